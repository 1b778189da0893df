#include "bootstrap/file_entry.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/own_file.h"
#include "bootstrap/auth.h"
#include "bootstrap/process.h"

namespace unisono::comm {
namespace {

constexpr std::string_view kTitle = "unisono.rendezvous/1";
constexpr std::size_t kMostBytes = 1 << 20;

struct Entry {
  int rank = -1;
  pid_t pid = 0;
  std::uint64_t start = 0;
};

// The file has these lines: the title; "job NAME SIZE"; one "rank NUMBER PID START" for each rank
// that has come.
struct Content {
  std::string job;
  int size = 0;
  std::vector<Entry> entries;
};

std::string reason() {
  return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
}

UniqueFd open_file(const std::string& path, bool create) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  UniqueFd file(::open(path.c_str(), create ? flags | O_CREAT : flags, 0600));
  if (!file && create) {
    throw Error(ErrorCode::config, "the rendezvous file " + path + " cannot be opened: " +
                                       reason() + "\nuse a path that this user can write");
  }
  return file;
}

void lock_file(const UniqueFd& file, const std::string& path, const Deadline& deadline) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw Error(ErrorCode::resource,
                  "the rendezvous file " + path + " cannot be locked: " + reason());
    }
    deadline.throw_if_interrupted();
    if (deadline.passed()) {
      throw Error(ErrorCode::connection, "the rendezvous file " + path +
                                             " stays locked by another process\nuse another file");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Returns false if the path now leads to another file or to none.
bool is_current(const UniqueFd& file, const std::string& path) {
  struct stat mine{};
  struct stat there{};
  return ::fstat(file.get(), &mine) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::config,
              "the rendezvous file " + path + " " + why + "\nuse another path, or remove the file");
}

Content read_content(const UniqueFd& file, const std::string& path) {
  if (const std::string why = why_not_own(file.get()); !why.empty()) {
    refuse(path, why);
  }
  Content content;
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; text.size() < kMostBytes;
       text.append(buffer.data(), static_cast<std::size_t>(got))) {
    got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (got <= 0) {
      break;
    }
  }
  if (text.empty()) {
    return content;
  }
  std::istringstream lines(text);
  std::string word;
  if (!(lines >> word) || word != kTitle || !(lines >> word >> content.job >> content.size) ||
      word != "job") {
    refuse(path, "is not a rendezvous file");
  }
  while (lines >> word) {
    Entry& entry = content.entries.emplace_back();
    if (word != "rank" || !(lines >> entry.rank >> entry.pid >> entry.start)) {
      refuse(path, "is damaged");
    }
  }
  return content;
}

void write_content(const UniqueFd& file, const std::string& path, const Content& content) {
  std::ostringstream text;
  text << kTitle << "\njob " << content.job << " " << content.size << "\n";
  for (const Entry& entry : content.entries) {
    text << "rank " << entry.rank << " " << entry.pid << " " << entry.start << "\n";
  }
  const std::string all = text.str();
  errno = ENOSPC;  // fewer bytes were written than given
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size())) {
    const std::string why = reason();
    ::unlink(path.c_str());  // half a file would be an error for all later ranks
    throw Error(ErrorCode::resource, "the rendezvous file " + path + " cannot be written: " + why);
  }
}

// Returns true if a rank of the job died before all ranks came, so that the job will never start.
bool is_stale(const Content& content) {
  return std::any_of(content.entries.begin(), content.entries.end(),
                     [](const Entry& entry) { return start_of(entry.pid) != entry.start; });
}

const Entry* find(const Content& content, int rank) {
  const auto found = std::find_if(content.entries.begin(), content.entries.end(),
                                  [rank](const Entry& entry) { return entry.rank == rank; });
  return found == content.entries.end() ? nullptr : &*found;
}

}  // namespace

FileEntry::FileEntry(const std::string& path, int rank, int size, const Deadline& deadline)
    : path_(path) {
  while (!enter(rank, size, deadline)) {
  }
}

// Returns false if another process has removed the file meanwhile.
bool FileEntry::enter(int rank, int size, const Deadline& deadline) {
  const UniqueFd file = open_file(path_, true);
  lock_file(file, path_, deadline);
  if (!is_current(file, path_)) {
    return false;
  }
  Content content = read_content(file, path_);
  if (content.job.empty() || is_stale(content)) {
    content = {random_hex(16), size, {}};
  }
  rank_ = rank;
  for (int free = 0; rank_ < 0; ++free) {
    rank_ = find(content, free) == nullptr ? free : -1;
  }
  if (const Entry* taken = find(content, rank_)) {
    throw Error(ErrorCode::config,
                "rank " + std::to_string(rank_) + " was given twice: to process " +
                    std::to_string(taken->pid) + " and to process " + std::to_string(::getpid()) +
                    " (rendezvous file " + path_ + ")\ngive one of them another rank");
  }
  const pid_t self = ::getpid();
  content.entries.push_back({rank_, self, start_of(self).value_or(0)});
  job_ = "file/" + content.job;
  if (content.entries.size() < static_cast<std::size_t>(content.size)) {
    write_content(file, path_, content);
  } else {
    ::unlink(path_.c_str());
  }
  return true;
}

void FileEntry::withdraw() const {
  const UniqueFd file = open_file(path_, false);
  if (!file) {
    return;
  }
  lock_file(file, path_, Deadline::after_ms(100));
  if (is_current(file, path_) && "file/" + read_content(file, path_).job == job_) {
    ::unlink(path_.c_str());
  }
}

}  // namespace unisono::comm
