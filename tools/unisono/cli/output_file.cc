#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/failure.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;
constexpr int kMostNames = 100;
constexpr mode_t kModeBits = 07777;

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Returns nothing if there is no such file.
std::optional<struct stat> status_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    return status;
  }
  return std::nullopt;
}

// Returns the file that links lead to, even if it does not exist yet. Returns nothing if the links
// lead to no name. The links of /proc (such as /dev/stdout) stand for open files, and their texts
// are not reliable names.
std::optional<std::string> followed(std::string path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks; ++links) {
    if (!fs::is_symlink(fs::symlink_status(path, error))) {
      return path;
    }
    if (fs::canonical(folder_of(path), error).string().starts_with("/proc/")) {
      return std::nullopt;
    }
    path = (fs::path(path).parent_path() / fs::read_symlink(path, error)).string();
  }
  return std::nullopt;
}

// Returns the name to which a complete file can be renamed. Returns nothing if the file must be
// written in place.
std::optional<std::string> replaceable(const std::string& path,
                                       const std::optional<struct stat>& status) {
  std::optional<std::string> target = followed(path);
  if (!status || !target) {
    return target;
  }
  const std::optional<struct stat> there = status_of(*target);
  const bool same = there && there->st_dev == status->st_dev && there->st_ino == status->st_ino;
  return S_ISREG(status->st_mode) && status->st_nlink == 1 && same ? target : std::nullopt;
}

// A new file beside the file that it will replace; removed unless it replaces that file.
class FreshFile {
 public:
  explicit FreshFile(const std::string& target) {
    for (int i = 0; !fd_ && i < kMostNames; ++i) {
      path_ = fmt::format("{}/.unisono-{}-{}", folder_of(target), ::getpid(), i);
      fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!fd_ && errno != EEXIST) {
        break;
      }
    }
    error_ = fd_ ? 0 : errno;
  }
  ~FreshFile() {
    if (fd_) {
      ::unlink(path_.c_str());
    }
  }
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;

  int fd() const { return fd_.get(); }
  int error() const { return error_; }
  bool resembles(const struct stat& old) const {
    struct stat own = {};
    return ::fstat(fd_.get(), &own) == 0 &&
           ((own.st_uid == old.st_uid && own.st_gid == old.st_gid) ||
            ::fchown(fd_.get(), old.st_uid, old.st_gid) == 0) &&
           ::fchmod(fd_.get(), old.st_mode & kModeBits) == 0;
  }
  // Some file systems report only here that they are full.
  bool is_stored() const { return ::fsync(fd_.get()) == 0 || errno == EINVAL; }
  bool becomes(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      return false;
    }
    fd_.reset();
    return true;
  }

 private:
  std::string path_;
  UniqueFd fd_;
  int error_ = 0;
};

// Returns false if nothing was changed and the file must be written in place.
bool write_beside(const std::string& path, const std::string& target,
                  const std::optional<struct stat>& old, std::string_view text) {
  FreshFile fresh(target);
  if (fresh.fd() < 0) {
    if (old && (fresh.error() == EACCES || fresh.error() == EPERM || fresh.error() == EROFS)) {
      return false;
    }
    refuse_output(path, fresh.error());
  }
  if (old && !fresh.resembles(*old)) {
    return false;
  }
  if (write_all(fresh.fd(), text) != 0 || !fresh.is_stored()) {
    refuse_output(path, errno);
  }
  if (fresh.becomes(target)) {
    return true;
  }
  if (!old) {
    refuse_output(path, errno);
  }
  return false;
}
// Writes a file that cannot be replaced by another file. The old contents stay if the disk is full
// or a size limit is too small.
void write_in_place(const std::string& path, const std::optional<struct stat>& old,
                    std::string_view text) {
  if (!old || !S_ISREG(old->st_mode)) {
    GrowingFile(path).add(text);
    return;
  }
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    refuse_output(path, errno);
  }
  const auto size = static_cast<off_t>(text.size());
  if (const int error = size == 0 ? 0 : ::posix_fallocate(fd.get(), 0, size); error != 0) {
    [[maybe_unused]] const int as_it_was = ::ftruncate(fd.get(), old->st_size);
    refuse_output(path, error);
  }
  if (write_all(fd.get(), text) != 0 || ::ftruncate(fd.get(), size) != 0) {
    refuse_output(path, errno);
  }
}

}  // namespace

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno != EINTR) {
      return -1;
    }
  }
  return 0;
}

void check_output(const std::string& path) {
  const std::optional<struct stat> status = status_of(path);
  if (status) {
    if (S_ISDIR(status->st_mode) || ::access(path.c_str(), W_OK) != 0) {
      refuse_output(path, S_ISDIR(status->st_mode) ? EISDIR : errno);
    }
    return;
  }
  const std::string target = followed(path).value_or(path);
  const std::string folder = folder_of(target);
  const std::optional<struct stat> above = status_of(folder);
  if (target.empty() || target.ends_with('/') || !above || !S_ISDIR(above->st_mode)) {
    refuse_output(path, ENOENT);
  }
  // Tries it, because no file can be created in /proc and similar file systems, whatever their
  // permissions.
  if (const FreshFile tried(target); tried.fd() < 0) {
    refuse_output(path, tried.error());
  }
}

void write_output(const std::string& path, std::string_view text) {
  check_output(path);
  const std::optional<struct stat> status = status_of(path);
  const std::optional<std::string> target = replaceable(path, status);
  if (!target || !write_beside(path, *target, status, text)) {
    write_in_place(path, status, text);
  }
}

GrowingFile::GrowingFile(std::string path) : path_(std::move(path)) {
  check_output(path_);
  const int create = ::access(path_.c_str(), F_OK) == 0 ? 0 : O_CREAT;
  fd_.reset(::open(path_.c_str(), O_WRONLY | create | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!fd_) {
    refuse_output(path_, errno);
  }
}

void GrowingFile::add(std::string_view text) {
  if (fd_ && write_all(fd_.get(), text) != 0) {
    refuse_output(path_, errno);
  }
}

void refuse_output(const std::string& path, int error) {
  const std::string head = fmt::format("cannot write {}", path.empty() ? "''" : path);
  const auto misnamed = [&](const std::string& why, const char* needed) {
    throw UsageError(fmt::format("{}: {}", head, why), needed);
  };
  switch (error) {
    case EISDIR:
      throw UsageError(fmt::format("{}: it is a folder", head), "name a file",
                       fmt::format("name {}{}NAME", path, path.ends_with('/') ? "" : "/"));
    case ENOENT:
    case ENOTDIR:
      if (const std::optional<struct stat> folder = status_of(folder_of(path));
          folder && S_ISDIR(folder->st_mode) && !path.empty() && !path.ends_with('/')) {
        misnamed(fmt::format("no file can be made in {}", folder_of(path)),
                 "name a file in a folder in which files can be created");
      }
      misnamed(path.empty() ? "the name is empty"
                            : fmt::format("there is no folder {}", folder_of(path)),
               "name a file in an existing folder");
      break;
    case EACCES:
    case EPERM:
      misnamed("there is no permission", "name a file that you can write");
      break;
    case EROFS:
      misnamed("its file system is read-only", "name a file that you can write");
      break;
    default:
      break;
  }
  const std::string why = error == ENOSPC || error == EDQUOT ? "its disk is full"
                          : error == EFBIG ? "it would be larger than ulimit -f allows"
                                           : std::strerror(error);
  throw Error(ErrorCode::resource, fmt::format("{}: {}\nname a file elsewhere", head, why));
}

}  // namespace unisono::cli
