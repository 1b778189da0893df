// Writes files to paths that the user gave, without damage to anything else.
//
// A regular file is written under a temporary name in the same folder, and renamed when it is
// complete. Until then, and if the disk is full, the old file stays as it is. The new file gets the
// mode and owner of the old file, and links are followed. Anything else (a device, a pipe, a file
// with several names) is written in place.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace unisono::cli {

// Call this before long work: it reports the errors of write_output() that can be known in advance.
// Changes nothing. Throws as refuse_output().
void check_output(const std::string& path);

// Throws as refuse_output().
void write_output(const std::string& path, std::string_view text);

// A file that is useful before it is complete: each addition is written at once, in place.
class GrowingFile {
 public:
  GrowingFile() = default;  // none
  // Throws as refuse_output().
  explicit GrowingFile(std::string path);
  // Throws as refuse_output().
  void add(std::string_view text);

 private:
  std::string path_;
  UniqueFd fd_;
};

// Writes all bytes, or returns -1 and sets errno.
int write_all(int fd, std::string_view text);

// Throws an error that says why the file cannot be written: UsageError if another path would help,
// otherwise Error.
[[noreturn]] void refuse_output(const std::string& path, int error);

}  // namespace unisono::cli
