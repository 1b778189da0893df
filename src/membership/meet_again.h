// How the ranks of several hosts that are left after a failure meet again: they agree who goes on,
// and then settle as at the first meeting.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bootstrap/net.h"

namespace unisono::comm {

struct Rules {
  std::function<bool(int)> is_gone;  // proved
  // How long a rank may still take to come whose connection has failed, or that has left, in
  // ms. -1: it can be reached, and is waited for.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: for ever
  bool quorum = true;
};
struct Survivors {
  std::vector<int> ranks;  // in the world that ends
  std::string mark;        // of this meeting alone
};
// `options`: of the world that ends; on return of the one to come. `survivors`: of the last
// meeting, if that failed; on return of this one. Errors: evicted.
NetMeeting meet_again_over_network(ConnectOptions& options, Endpoints& endpoints,
                                   const Rules& rules, Survivors& survivors);
// The name of the job of those that go on; and of the first world of all.
std::string name_of_survivors(const std::string& job, const std::string& mark);
std::string first_name(const std::string& job);

}  // namespace unisono::comm
