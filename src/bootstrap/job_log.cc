#include "bootstrap/job_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <new>
#include <utility>

#include "base/env.h"
#include "base/unique_fd.h"

namespace unisono::comm {
namespace {

constexpr std::string_view kBegin = "job ";
constexpr std::size_t kMostLogBytes = std::size_t{1} << 22;  // more than any job writes

// Splits "end 3 killed" into "end" and "3 killed".
std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
  const std::size_t space = text.find(' ');
  return space == std::string_view::npos ? std::pair{text, std::string_view{}}
                                         : std::pair{text.substr(0, space), text.substr(space + 1)};
}

int parse_rank(std::string_view text) {
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return error == std::errc{} && end == text.data() + text.size() ? rank : -1;
}

void take_line(std::string_view line, JobLog& log) {
  const auto [kind, rest] = split_word(line);
  const auto [first, second] = split_word(rest);
  if (kind == "job") {
    log.job = first;
    log.ranks = parse_rank(second);
  } else if (kind == "end" && parse_rank(first) >= 0) {
    log.ends[parse_rank(first)] = second;
  } else if (kind == "met") {
    log.have_met = true;
  } else if (kind == "missed" && log.missed < 0) {
    log.missed = parse_rank(first);
  } else if (kind == "reason") {
    log.reason = rest;
  } else if (kind == "advice") {
    log.advice = rest;
  } else if (kind == "failed" && parse_rank(first) >= 0) {
    const auto [culprit, why] = split_word(second);
    log.failures[parse_rank(first)] = {.culprit = parse_rank(culprit), .why = std::string(why)};
  } else if (kind == "recovered") {
    log.failures.erase(parse_rank(first));
  }
}

// After a launcher has ended, its process number may belong to a process with other files.
// Therefore a file that could block a read or a write is not opened.
UniqueFd open_log(const std::string& path, int how) {
  constexpr int kHarmless = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  UniqueFd file(path.empty() ? -1 : ::open(path.c_str(), kHarmless | how));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {};
  }
  return file;
}

}  // namespace

JobLog parse_job_log(std::string_view text) {
  JobLog log;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    take_line(text.substr(0, end), log);
    text.remove_prefix(end + 1);
  }
  return log;
}

std::string read_job_log(int fd) {
  std::string text;
  std::array<char, 4096> part;
  while (text.size() < kMostLogBytes) {
    const ssize_t got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got <= 0) {
      break;
    }
    text.append(part.data(), static_cast<std::size_t>(got));
    if (!text.starts_with(kBegin)) {
      return {};
    }
  }
  return text;
}

std::string job_line(const std::string& job, int ranks) {
  return "job " + job + " " + std::to_string(ranks) + "\n";
}

std::string end_line(int rank, const std::string& how) {
  return "end " + std::to_string(rank) + " " + how + "\n";
}

std::string met_line() {
  return "met\n";
}

std::string missed_line(int rank) {
  return "missed " + std::to_string(rank) + "\n";
}

std::string reason_lines(const std::string& reason, const std::string& advice) {
  return "reason " + reason + "\nadvice " + advice + "\n";
}

std::string failed_line(int rank, int culprit, std::string_view why) {
  return "failed " + std::to_string(rank) + " " + std::to_string(culprit) + " " +
         std::string(why.substr(0, why.find('\n'))) + "\n";
}

std::string recovered_line(int rank) {
  return "recovered " + std::to_string(rank) + "\n";
}

SharedJobLog::SharedJobLog()
    : path_(read_env("UNISONO_LAUNCHER").value_or("")),
      process_(path_.empty() ? -1 : parse_rank(read_env("RANK").value_or(""))) {}

JobLog SharedJobLog::read() const {
  const UniqueFd file = open_log(path_, O_RDONLY);
  return file ? parse_job_log(read_job_log(file.get())) : JobLog();
}

void SharedJobLog::add(const std::string& line) const {
  // Never appends to a file that is not the launcher's.
  if (read().ranks <= 0) {
    return;
  }
  if (const UniqueFd file = open_log(path_, O_WRONLY | O_APPEND)) {
    [[maybe_unused]] const ssize_t written = ::write(file.get(), line.data(), line.size());
  }
}

bool FailureReport::is_ours(const JobLog& log) const {
  return log.ranks > 0 && log.job == job_ && log_.process() >= 0 && log_.process() < log.ranks;
}

void FailureReport::tell(int culprit, std::string_view why) noexcept {
  if (told_.test_and_set()) {
    return;
  }
  try {
    if (is_ours(log_.read())) {
      log_.add(failed_line(log_.process(), culprit, why));
    }
  } catch (const std::bad_alloc&) {
    return;  // the program has the error in any case
  }
}

void FailureReport::tell_recovery() const {
  const JobLog log = log_.read();
  if (is_ours(log) && log.failures.contains(log_.process())) {
    log_.add(recovered_line(log_.process()));
  }
}

}  // namespace unisono::comm
