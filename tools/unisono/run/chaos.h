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
  // A signal for a rank; 0: its connections are reset.
  struct ScheduledFault {
    int rank = 0;
    int signal = 0;
  };

  // `relay_at`: the address at which the ranks reach this process; none: the ranks connect
  // directly.
  Chaos(const chaos::Plan& plan, const std::optional<tcp::Address>& relay_at);

  // Returns the variables with which the ranks find each other through the relay.
  std::vector<std::string> environment() const;
  // Returns the faults that are due this long after the start of the job, each once.
  std::vector<ScheduledFault> due(Milliseconds since_start);
  // REQUIRES: a ScheduledFault of signal 0 was due.
  void reset(int rank);
  // Returns the faults that are not due yet, by time. A planned stop and continuation of a rank
  // count as one fault.
  std::vector<ScheduledFault> left() const;
  // Returns the time of the next fault; none: no fault is left.
  std::optional<Milliseconds> next() const;

 private:
  struct Event {
    Milliseconds at;
    int rank;
    int signal;  // 0: its connections are reset
  };
  std::vector<Event> events_;  // sorted by time, latest first
  std::optional<chaos::RelayServer> relay_;
};

// Returns the plan of --chaos, with all random choices made; none: no --chaos. `first_host`: the
// first host of --hosts, otherwise empty. Throws UsageError.
std::optional<chaos::Plan> read_chaos(const Arguments& arguments, int ranks,
                                      const std::string& transport, const std::string& first_host);
// Returns the address at which the job's ranks reach this process. Throws UsageError.
std::optional<tcp::Address> relay_address(const chaos::Plan& plan, const std::string& first_host);
// Returns the command line that repeats the same faults.
std::string replay_command(const Arguments& arguments, const chaos::Plan& plan);

}  // namespace unisono::cli
