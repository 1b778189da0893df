#include "job.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "bootstrap/testing.h"

namespace unisono::testing {
namespace {

void send_report(int fd, const Report& report) {
  static_cast<void>(!::write(fd, &report, sizeof(report)));
}

[[noreturn]] void run_rank(int reports, const Job::Body& body, const ConnectOptions& options) {
  Report report;
  try {
    Communicator communicator = Communicator::connect(options);
    send_report(reports, {.kind = Report::Kind::ready});
    try {
      body(communicator);
    } catch (const Error&) {
      report.at_ns = now_ns();
      throw;
    }
  } catch (const Error& error) {
    report.at_ns = report.at_ns == 0 ? now_ns() : report.at_ns;
    report.kind = Report::Kind::failed;
    report.code = error.code();
    report.peer = error.context().peer;
    std::strncpy(report.text, error.what(), sizeof(report.text) - 1);
  } catch (const std::exception& error) {
    report.kind = Report::Kind::failed;
    std::strncpy(report.text, error.what(), sizeof(report.text) - 1);
  }
  send_report(reports, report);
  _exit(0);
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void expect_no_files(const std::string& job) {
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      EXPECT_EQ(entry.path().string().find(job), std::string::npos) << entry.path();
    }
  }
}

Job::Job(int ranks, const Body& body, int timeout_ms, int connect_timeout_ms)
    : name_(comm::testing::unique_name("multiprocess")),
      timeout_ms_(timeout_ms),
      connect_timeout_ms_(connect_timeout_ms),
      ranks_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    start(rank, body);
  }
}

void Job::replace(int rank, const Body& body) {
  ::waitpid(ranks_[static_cast<std::size_t>(rank)].pid, nullptr, 0);
  start(rank, body);
}

void Job::start(int rank, const Body& body) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    throw Error(ErrorCode::resource, "no pipe");
  }
  const UniqueFd in(ends[1]);
  Rank& mine = ranks_[static_cast<std::size_t>(rank)];
  mine.reports.reset(ends[0]);
  ConnectOptions options = comm::testing::options_for(rank, ranks(), name_, connect_timeout_ms_);
  options.timeout_ms = timeout_ms_;
  mine.pid = ::fork();
  if (mine.pid == 0) {
    run_rank(in.get(), body, options);
  }
}

Job::~Job() {
  for (const Rank& rank : ranks_) {
    ::kill(rank.pid, SIGKILL);
    ::waitpid(rank.pid, nullptr, 0);
  }
}

std::optional<Report> Job::read_report(const Rank& rank, int timeout_ms) {
  pollfd waiting{.fd = rank.reports.get(), .events = POLLIN, .revents = 0};
  Report report;
  if (::poll(&waiting, 1, timeout_ms) != 1 ||
      ::read(rank.reports.get(), &report, sizeof(report)) != sizeof(report)) {
    return std::nullopt;
  }
  return report;
}

bool Job::wait_ready() {
  for (const Rank& rank : ranks_) {
    const auto report = read_report(rank, 60'000);
    if (!report.has_value() || report->kind != Report::Kind::ready) {
      return false;
    }
  }
  return true;
}

std::string Job::await_ready(int rank) {
  const auto report = read_report(ranks_[static_cast<std::size_t>(rank)], 60'000);
  return !report.has_value()                   ? "nothing"
         : report->kind == Report::Kind::ready ? "ready"
                                               : report->text;
}

std::int64_t Job::signal(int rank, int number) const {
  ::kill(ranks_[static_cast<std::size_t>(rank)].pid, number);
  return now_ns();
}

std::optional<Report> Job::ending(int rank, int timeout_ms) {
  const Rank& mine = ranks_[static_cast<std::size_t>(rank)];
  auto report = read_report(mine, timeout_ms);
  if (report.has_value() && report->kind == Report::Kind::ready) {
    report = read_report(mine, timeout_ms);
  }
  return report;
}

}  // namespace unisono::testing
