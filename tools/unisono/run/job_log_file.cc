#include "run/job_log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "bootstrap/job_log.h"

namespace unisono::cli {

JobLogFile::JobLogFile(const std::string& job, int ranks)
    : memory_(::memfd_create("unisono-launcher", MFD_CLOEXEC)) {
  if (memory_) {
    ::fcntl(memory_.get(), F_SETFL, O_APPEND);  // ranks append to it as well
  }
  add(comm::job_line(job, ranks));
}

std::string JobLogFile::environment() const {
  constexpr const char* kNone = "UNISONO_LAUNCHER";  // takes it away
  return memory_ ? fmt::format("{}=/proc/{}/fd/{}", kNone, ::getpid(), memory_.get()) : kNone;
}

void JobLogFile::write_end(int rank, const std::string& how) {
  add(comm::end_line(rank, how));
}

std::string JobLogFile::write_reason(const std::string& reason, const std::string& advice) {
  if (has_reason_) {
    return {};
  }
  has_reason_ = true;
  std::string lines = comm::reason_lines(reason, advice);
  add(lines);
  return lines;
}

comm::JobLog JobLogFile::read() const {
  return comm::parse_job_log(comm::read_job_log(memory_.get()) + remote_);
}

void JobLogFile::add(const std::string& lines) {
  if (memory_) {
    [[maybe_unused]] const ssize_t written = ::write(memory_.get(), lines.data(), lines.size());
  }
}

std::string RemoteLog::take(std::string_view bytes) {
  held_ += bytes;
  std::string shown;
  for (std::size_t at = held_.find(mark_); at != std::string::npos; at = held_.find(mark_)) {
    shown += held_.substr(0, at);
    if (at > 0 && held_[at - 1] != '\n') {
      shown += '\n';  // the rank ended without a final line feed
    }
    held_.erase(0, at);
    const std::size_t end = held_.find('\n');
    if (end == std::string::npos) {
      return shown;
    }
    lines_ += held_.substr(mark_.size(), end + 1 - mark_.size());
    held_.erase(0, end + 1);
  }
  std::size_t begun = std::min(held_.size(), mark_.size() - 1);
  while (!held_.ends_with(std::string_view(mark_).substr(0, begun))) {
    --begun;
  }
  shown += held_.substr(0, held_.size() - begun);
  held_.erase(0, held_.size() - begun);
  return shown;
}

std::string RemoteLog::finish() {
  return held_.starts_with(mark_) ? std::string() : std::exchange(held_, {});
}

std::string RemoteLog::lines() {
  return std::exchange(lines_, {});
}

}  // namespace unisono::cli
