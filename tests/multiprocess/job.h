// A job of ranks as processes that a test may kill: each reports how it ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "unisono/communicator.hpp"

namespace unisono::testing {

// A rank's report about itself, through a pipe, in one write.
struct Report {
  enum class Kind : std::uint8_t { ready, ended, failed };
  Kind kind = Kind::ended;
  ErrorCode code = ErrorCode::internal;
  std::int32_t peer = -1;
  std::int64_t at_ns = 0;
  char text[256] = {};
};

class Job {
 public:
  // `body` runs on every rank, after connect(), and throws what ends it.
  using Body = std::function<void(Communicator&)>;
  Job(int ranks, const Body& body, int timeout_ms = 60'000, int connect_timeout_ms = 60'000);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();  // kills and collects the remaining processes

  // Starts a new process in place of a rank that was killed.
  void replace(int rank, const Body& body);

  int ranks() const { return static_cast<int>(ranks_.size()); }
  const std::string& name() const { return name_; }
  // Returns when all ranks have connected; false: not within a minute.
  bool wait_ready();
  // Returns "ready" when this rank has connected, otherwise its message.
  std::string await_ready(int rank);
  // Returns when the signal was sent, in nanoseconds.
  std::int64_t signal(int rank, int number) const;
  pid_t process(int rank) const { return ranks_[static_cast<std::size_t>(rank)].pid; }
  // Returns how a rank ended; nothing if it does not end within `timeout_ms`, or ends without a
  // report.
  std::optional<Report> ending(int rank, int timeout_ms = 90'000);

 private:
  struct Rank {
    pid_t pid = -1;
    UniqueFd reports;
  };
  void start(int rank, const Body& body);
  static std::optional<Report> read_report(const Rank& rank, int timeout_ms);
  std::string name_;
  int timeout_ms_;
  int connect_timeout_ms_;
  std::vector<Rank> ranks_;
};

std::int64_t now_ns();

// Checks that a job of this name has left nothing behind.
void expect_no_files(const std::string& job);

}  // namespace unisono::testing
