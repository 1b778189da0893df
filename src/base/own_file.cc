#include "base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace unisono {

UniqueFd open_own_file(const std::string& path, int flags, std::string& why, mode_t mode) {
  // O_NONBLOCK: the path may be a pipe of another user, and opening it would block.
  constexpr int kCareful = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const int truncates = flags & O_TRUNC;
  UniqueFd file(::open(path.c_str(), (flags & ~O_TRUNC) | kCareful, mode));
  if (!file) {
    why = errno == ELOOP ? "it is a symbolic link"
                         : std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
    return {};
  }
  why = why_not_own(file.get());
  // Truncates only after the file is known to belong to this user.
  if (why.empty() && truncates != 0 && ::ftruncate(file.get(), 0) != 0) {
    why = std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  }
  return why.empty() ? std::move(file) : UniqueFd();
}

std::string why_not_own(int file) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) {
    return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
  }
  if (!S_ISREG(status.st_mode)) {
    return "is not a regular file";
  }
  if (status.st_uid != ::geteuid()) {
    return "belongs to user " + std::to_string(status.st_uid);
  }
  if (status.st_nlink > 1) {
    return "has a second name (a hard link)";
  }
  return {};
}

}  // namespace unisono
