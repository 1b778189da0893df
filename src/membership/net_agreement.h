// Ranks on several hosts agree which ranks continue after a failure. The lowest reachable rank is
// the coordinator. Every other rank connects to the address where the coordinator listened before,
// proves that it knows the token, and reports which ranks on its host are proved dead. The
// coordinator sends the list of continuing ranks to all ranks that have connected. If the
// coordinator dies before that, the next rank becomes coordinator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"

namespace unisono::comm {

struct NetAgreement {
  tcp::Identity self;  // in the ending world
  // The possible addresses of each rank, by rank. This rank's own sockets are reserved at its
  // addresses.
  const std::vector<std::vector<tcp::Address>>& addresses;
  std::vector<UniqueFd>& endpoints;
  BusinessCard mine;                 // of this rank, in the new world
  std::function<bool(int)> is_gone;  // proved
  // Returns how much longer, in ms, to wait for a rank whose connection has failed or that has
  // left: 0 if the rank has left, -1 if it is reachable, so that there is no such limit.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: no limit
  bool quorum = true;
  // The members of the last answer, if this rank could not connect to them. They may have
  // continued, so a smaller part of them must not.
  std::vector<int> last;
};
struct AgreedView {
  std::vector<int> ranks;           // that continue, in ascending order
  std::string mark;                 // unique to this answer; the same on all of them
  std::vector<BusinessCard> cards;  // of these ranks
};
// Blocks until all other ranks have come or are given up. Throws evicted if there is no quorum, or
// if the other ranks cannot be found any more.
AgreedView agree_over_network(NetAgreement& agreement);

}  // namespace unisono::comm
