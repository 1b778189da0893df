// Reading with zlib, which takes a file that is not compressed as it is.
#include "cli/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <memory>
#include <type_traits>
#include <vector>

#include "base/unique_fd.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

struct CloseGz {
  void operator()(gzFile file) const { ::gzclose_r(file); }
};

using GzFile = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGz>;

GzFile open_text(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw UsageError(fmt::format("{} is a folder", path));
  }
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    throw UsageError(fmt::format("cannot read {}", path), "no such file, or no permission");
  }
  GzFile file(::gzdopen(fd.get(), "rb"));
  if (file == nullptr) {
    throw Error(ErrorCode::resource, fmt::format("no memory to read {}", path));
  }
  static_cast<void>(fd.release());  // the file closes it
  return file;
}

}  // namespace

std::string read_text_file(const std::string& path, std::size_t most) {
  const GzFile file = open_text(path);
  std::string text;
  std::vector<char> block(1 << 16);
  int got = 0;
  while ((got = ::gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > most) {
      throw UsageError(fmt::format("{} is larger than {} MB", path, most / 1'000'000));
    }
  }
  int status = Z_OK;
  ::gzerror(file.get(), &status);
  if (status != Z_OK && ::gzdirect(file.get()) == 0) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{} is compressed by gzip, and damaged or cut off\nmake or copy it "
                            "again",
                            path));
  }
  if (status != Z_OK) {
    throw UsageError(fmt::format("cannot read {}", path), "the file system fails");
  }
  return text;
}

}  // namespace unisono::cli
