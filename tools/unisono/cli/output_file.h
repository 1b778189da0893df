// Files that a user named, so that writing one harms nothing else.
//
// A regular file is written beside its place and renamed when it is whole: what was there stays
// until then, and on a full disk after it too. Its mode and owner stay, and links are followed.
// Anything else (a device, a pipe, a file with several names) is written in place.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace unisono::cli {

// For work that takes long: says before it what write_output() would say after it, as far as it
// can be known. Changes nothing. Throws as refuse_output().
void check_output(const std::string& path);

// Throws as refuse_output().
void write_output(const std::string& path, std::string_view text);

// A file that is of use before it is whole: always written in place, and at once.
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

// All of the bytes, or -1 and errno.
int write_all(int fd, std::string_view text);

// A sentence on why the file cannot be written: UsageError where another name helps, else Error.
[[noreturn]] void refuse_output(const std::string& path, int error);

}  // namespace unisono::cli
