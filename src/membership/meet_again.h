// Connects the remaining ranks on several hosts again after a failure: they agree on the members,
// and then connect as for the first time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bootstrap/net.h"

namespace unisono::comm {

struct Rules {
  std::function<bool(int)> is_gone;  // proved
  // Returns how much longer, in ms, to wait for a rank whose connection has failed or that has
  // left. -1: it is reachable and waited for.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: no limit
  bool quorum = true;
};
struct Survivors {
  std::vector<int> ranks;  // in the world that ends
  std::string mark;        // unique to this meeting
};
// `options`: of the ending world; replaced by those of the new one. `survivors`: of the last
// meeting, if that failed; replaced by this one's. Errors: evicted.
NetMeeting meet_again_over_network(ConnectOptions& options, Endpoints& endpoints,
                                   const Rules& rules, Survivors& survivors);
// Returns the job name of the continuing ranks; and that of the very first world.
std::string name_of_survivors(const std::string& job, const std::string& mark);
std::string first_name(const std::string& job);

}  // namespace unisono::comm
