// Connecting on one host: rank 0 collects the other ranks; the other ranks find rank 0.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/rank_names.h"
#include "bootstrap/wire.h"

namespace unisono::comm {

inline constexpr int kLateMs = 1000;  // to tell a rank why the meeting has failed
// After this time without a free descriptor, while no stranger holds one, a rank gives up.
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

// The process id of a rank as seen by rank 0's kernel and by the rank itself. They differ across
// PID namespaces, where neither number is of use to others.
struct Process {
  pid_t seen = 0;
  pid_t own = 0;
  bool operator==(const Process&) const = default;
};

struct Meeting {
  std::vector<UniqueFd> links;  // rank 0: by rank, its own empty; other ranks: one, to rank 0
  std::vector<Process> processes;
};

// Both block until all ranks have joined, or throw config or connection, with the same reason on
// every rank that can be told.
Meeting meet_as_root(const JoinRequest& join_request);
Meeting meet_as_other(const JoinRequest& join_request);

// One attempt to reach rank 0. No meeting: nobody there, or the connection closed without a word;
// `obstacle` then says what is in the way, if it is not mere absence; `root` is the process that
// hung up without a word. Throws the error that rank 0 sent.
struct Attempt {
  bool met = false;
  Meeting meeting;
  std::string obstacle;
  UniqueFd root;
  pid_t root_pid = 0;
};
Attempt attempt_to_meet(const JoinRequest& join_request);

// A rank that waits for the others longer than this says so once on stderr, because most often they
// were never started. Silenced by UNISONO_QUIET=1.
inline constexpr int kSilentMs = 3000;
void say_waiting(const std::string& what);

// Returns the advice for ranks that belong to several users.
inline constexpr std::string_view kOneUser =
    "start all ranks of a host as one user, or set UNISONO_ADDRESS and UNISONO_TOKEN to connect "
    "them over the network";

// Returns the time since the invitation: "30.0 s".
std::string waited(const JoinRequest& join_request);

}  // namespace unisono::comm
