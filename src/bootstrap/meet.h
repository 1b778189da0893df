// Connecting on one host: rank 0 collects the other ranks, which have to find rank 0.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/rank_names.h"
#include "bootstrap/wire.h"

namespace unisono::comm {

inline constexpr int kLateMs = 1000;  // to tell a rank why the meeting has failed
// A rank gives up after this time without a free descriptor, if no stranger holds one.
inline constexpr int kStarvedMs = 1000;

// The parameters with which one rank joins the meeting.
struct JoinRequest {
  int rank = 0;
  int size = 1;
  RankNames names;
  std::string job;
  std::string token;  // empty: processes of the same user are trusted
  Deadline deadline;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

// The process id of a rank according to rank 0's kernel, and according to the rank itself. If the
// two differ, the rank is in another PID namespace, and other ranks cannot use either number.
struct Process {
  pid_t seen = 0;
  pid_t own = 0;
  bool operator==(const Process&) const = default;
};

struct Meeting {
  std::vector<UniqueFd> links;  // rank 0: by rank, its own empty; other ranks: one, to rank 0
  std::vector<Process> processes;
};

// Both block until all ranks have joined. They throw config or connection, with the same reason on
// every rank that can be notified.
Meeting meet_as_root(const JoinRequest& join_request);
Meeting meet_as_other(const JoinRequest& join_request);

// The result of one attempt to reach rank 0. There is no meeting if nobody listens, or if the
// connection closed without a message. `obstacle` describes a reason other than mere absence.
// `root` is the process that closed without a message. Throws the error that rank 0 sent.
struct Attempt {
  bool met = false;
  Meeting meeting;
  std::string obstacle;
  UniqueFd root;
  pid_t root_pid = 0;
};
Attempt attempt_to_meet(const JoinRequest& join_request);

// A rank that waits longer than this prints one line on stderr, because most often the missing
// ranks were never started. UNISONO_QUIET=1 suppresses the line.
inline constexpr int kSilentMs = 3000;
void say_waiting(const std::string& what);

// The advice for ranks that belong to several users.
inline constexpr std::string_view kOneUser =
    "start all ranks of a host as one user, or set UNISONO_ADDRESS and UNISONO_TOKEN to connect "
    "them over the network";

// Returns the time since the request was made, such as "30.0 s".
std::string waited(const JoinRequest& join_request);

}  // namespace unisono::comm
