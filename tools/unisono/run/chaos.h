// The faults that `unisono run --chaos` injects into a job: bad links between the ranks, and ranks
// that are killed, stopped or cut off.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "chaos/options.h"
#include "chaos/relay_server.h"
#include "cli/arguments.h"

namespace unisono::cli {

class Chaos {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // A signal that a rank shall get; 0: its connections are reset.
  struct ScheduledFault {
    int rank = 0;
    int signal = 0;
  };

  // `relay_at`: where the ranks reach this process; none: nothing is between them.
  Chaos(const chaos::Plan& plan, const std::optional<tcp::Address>& relay_at);

  // For the ranks: how they find each other through it.
  std::vector<std::string> environment() const;
  // Returns the faults that are due this long after the start of the job, each once.
  std::vector<ScheduledFault> due(Milliseconds since_start);
  // REQUIRES: a ScheduledFault of signal 0 was due.
  void reset(int rank);
  // Returns the faults that have not been due yet, by time; a rank that was to continue again
  // counts only as stopped.
  std::vector<ScheduledFault> left() const;
  // When something will be; none: nothing is left.
  std::optional<Milliseconds> next() const;

 private:
  struct Event {
    Milliseconds at;
    int rank;
    int signal;  // 0: its connections are reset
  };
  std::vector<Event> events_;  // by time, the last first
  std::optional<chaos::RelayServer> relay_;
};

// The plan of --chaos with all that was left to chance drawn; none: no chaos. `first_host`: of
// --hosts, else empty. Throws UsageError.
std::optional<chaos::Plan> read_chaos(const Arguments& arguments, int ranks,
                                      const std::string& transport, const std::string& first_host);
// Returns the address at which the job's ranks reach this process. Throws UsageError.
std::optional<tcp::Address> relay_address(const chaos::Plan& plan, const std::string& first_host);
// The command line that does the same again.
std::string replay_command(const Arguments& arguments, const chaos::Plan& plan);

}  // namespace unisono::cli
