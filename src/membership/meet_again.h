// Connects the remaining ranks on several hosts again after a failure. They agree on the members,
// and then connect in the same way as the first time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bootstrap/net.h"

namespace unisono::comm {

struct Rules {
  std::function<bool(int)> is_gone;  // proved
  // Returns how much longer, in ms, to wait for a rank whose connection has failed or that has
  // left. Returns -1 if the rank is reachable, so that there is no such limit.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: no limit
  bool quorum = true;
};
struct Survivors {
  std::vector<int> ranks;  // in the world that ends
  std::string mark;        // unique to this meeting
};
// `options` are those of the ending world, and become those of the new world. `survivors` are the
// result of the last meeting if that meeting failed, and become the result of this one. Errors:
// evicted.
NetMeeting meet_again_over_network(ConnectOptions& options, Endpoints& endpoints,
                                   const Rules& rules, Survivors& survivors);
// The first returns the job name of the ranks that continue; the second returns the job name of the
// very first world.
std::string name_of_survivors(const std::string& job, const std::string& mark);
std::string first_name(const std::string& job);

}  // namespace unisono::comm
