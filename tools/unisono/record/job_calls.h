// The calls of a job's ranks, recorded by any program: the input of a verdict (verdict.h) and of a
// simulation of changes (what_if.h).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

inline constexpr double kUnknownUs = std::numeric_limits<double>::quiet_NaN();

struct JobCall {
  int rank = 0;
  int group = 0;           // in JobCalls::groups
  int number = 0;          // in the group: calls of ranks with the same number are one operation
  std::int64_t shown = 0;  // the number that the library gave the call
  int what = 0;            // in JobCalls::names: "all_reduce"
  int dtype = 0;           // in JobCalls::names
  double bytes = 0;        // the larger of what a rank sends and receives
  double received = 0;     // bytes; 0: unknown
  double issued_us = kUnknownUs;  // when the host issued it; a device may run it later
  double start_us = kUnknownUs;
  double took_us = kUnknownUs;  // exact duration, if the ends are only times of a watchdog
  double end_us = kUnknownUs;
  bool is_begun = true;  // false: a device has not reached it
  bool is_ended = true;
  int place = -1;  // in JobCalls::names: where the program made the call; -1: unknown
};

struct JobGroup {
  std::string name = {};
  std::string axis = {};  // groups of one axis do the same work: "mesh_tp"
  std::vector<int> members = {};
  bool is_message = false;  // a pair of a sender and a receiver
};

class JobCalls {
 public:
  int ranks = 0;
  bool has_times = true;        // false: only the order of the calls is known
  bool is_of_launches = false;  // the times are those of launches, not of the work on the device
  std::vector<JobGroup> groups = {};
  std::vector<std::string> names = {};
  std::vector<std::string> hosts = {};           // by rank; empty: unknown
  std::vector<std::vector<JobCall>> calls = {};  // by rank, in the order of the calls
  std::vector<bool> has_record = {};             // by rank
  // By rank: calls before the first one of its record were lost.
  std::vector<bool> has_lost = {};

  int name_of(std::string_view text);
  // Returns the group of this name, and adds one without members if there is none.
  int group_of(const std::string& name);
  std::string what(const JobCall& call) const { return names[static_cast<std::size_t>(call.what)]; }
  const JobGroup& group(const JobCall& call) const {
    return groups[static_cast<std::size_t>(call.group)];
  }
  // "all_reduce #17 of world"
  std::string text_of(const JobCall& call) const;

 private:
  std::map<std::string, int, std::less<>> known_names_ = {};
  std::map<std::string, int, std::less<>> known_groups_ = {};
};

// The calls of several ranks that are one operation.
struct JobMeeting {
  std::vector<const JobCall*> calls = {};  // by rank
  const JobCall& first() const { return *calls.front(); }
};
// Returns all operations, sorted by group and number. `job` must outlive them.
std::vector<JobMeeting> meetings_of(const JobCalls& job);

// Returns the calls of a unisono.trace/1. Throws UsageError, or an exception of nlohmann::json, if
// the recording is incomplete.
JobCalls job_calls_of(const nlohmann::ordered_json& trace);

}  // namespace unisono::cli
