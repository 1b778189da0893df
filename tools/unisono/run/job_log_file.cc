#include "run/job_log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bootstrap/job_log.h"

namespace unisono::cli {

JobLogFile::JobLogFile(const std::string& job, int ranks)
    : memory_(::memfd_create("unisono-launcher", MFD_CLOEXEC)) {
  if (memory_) {
    ::fcntl(memory_.get(), F_SETFL, O_APPEND);  // ranks add to it as well
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

void JobLogFile::write_reason(const std::string& reason, const std::string& advice) {
  if (!has_reason_) {
    add(comm::reason_lines(reason, advice));
  }
  has_reason_ = true;
}

int JobLogFile::missed() const {
  return comm::parse_job_log(comm::read_job_log(memory_.get())).missed;
}

void JobLogFile::add(const std::string& lines) {
  if (memory_) {
    [[maybe_unused]] const ssize_t written = ::write(memory_.get(), lines.data(), lines.size());
  }
}

}  // namespace unisono::cli
