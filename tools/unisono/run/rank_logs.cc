#include "run/rank_logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/own_file.h"
#include "base/rank_list.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

// Returns the size of a file that has no name any more, and disappears with its descriptor.
std::uint64_t bytes_of_removed(int file) {
  struct stat status = {};
  const bool removed = ::fstat(file, &status) == 0 && status.st_nlink == 0;
  return removed ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

void RankLogs::open(const std::string& directory, int ranks) {
  if (directory.empty()) {
    return;
  }
  directory_ = directory;
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    throw UsageError(fmt::format("--log-dir '{}': {}", directory, std::strerror(errno)));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    for (const char* ending : {"out", "err"}) {
      const std::string path = fmt::format("{}/rank-{}.{}", directory, rank, ending);
      std::string why;
      UniqueFd file = open_own_file(path, O_WRONLY | O_CREAT | O_TRUNC, why, 0666);
      if (!file) {
        throw UsageError(fmt::format("cannot write {}: {}", path, why),
                         "name a folder that no other user writes to");
      }
      logs_.push_back({.rank = rank, .file = std::move(file)});
    }
  }
}

void RankLogs::write(int rank, Stream stream, std::string_view bytes) {
  if (logs_.empty()) {
    return;
  }
  const std::size_t place = static_cast<std::size_t>(rank) * 2 + (stream == Stream::err ? 1 : 0);
  const int file = logs_[place].file.get();
  const ssize_t written = ::write(file, bytes.data(), bytes.size());
  if (written == static_cast<ssize_t>(bytes.size())) {
    return;
  }
  // After a partial write, only a write of the rest returns the reason.
  const std::string_view rest = bytes.substr(written < 0 ? 0 : static_cast<std::size_t>(written));
  const ssize_t more = written < 0 ? -1 : ::write(file, rest.data(), rest.size());
  if (more != static_cast<ssize_t>(rest.size())) {
    error_ = more < 0 ? errno : ENOSPC;
    lost_of_.insert(rank);
    lost_bytes_ += rest.size() - static_cast<std::size_t>(std::max<ssize_t>(more, 0));
  }
}

bool RankLogs::tell_lost() const {
  std::set<int> ranks = lost_of_;
  std::uint64_t bytes = lost_bytes_;
  int error = error_;
  for (const Log& log : logs_) {
    if (const std::uint64_t removed = bytes_of_removed(log.file.get()); removed != 0) {
      bytes += removed;
      ranks.insert(log.rank);
      error = error == 0 ? ENOENT : error;
    }
  }
  if (bytes != 0) {
    std::fflush(stdout);
    fmt::print(stderr, "warning: {} B of the output of {} are missing in {}: {}\n", bytes,
               ranks_text({ranks.begin(), ranks.end()}), directory_, std::strerror(error));
  }
  return bytes != 0;
}

}  // namespace unisono::cli
