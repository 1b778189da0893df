// Ranks on several hosts agree which ranks continue after a failure. The lowest reachable rank is
// the coordinator: the others connect to the address where it listened before, prove that they know
// the token, and report which ranks on their host are proved dead. The coordinator sends the list
// of continuing ranks to all ranks that connected. If it dies first, the next rank coordinates.
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
  // By rank: its possible addresses. This rank's own sockets are reserved there.
  const std::vector<std::vector<tcp::Address>>& addresses;
  std::vector<UniqueFd>& endpoints;
  BusinessCard mine;                 // of this rank, in the new world
  std::function<bool(int)> is_gone;  // proved
  // Returns how much longer, in ms, to wait for a rank whose connection has failed or that has
  // left. -1: it is reachable and waited for. 0: it has left.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: no limit
  bool quorum = true;
  // The last answer that this rank got, if it could not connect to its members: they may have
  // continued, so no smaller part of them may.
  std::vector<int> last;
};
struct AgreedView {
  std::vector<int> ranks;           // that continue, in ascending order
  std::string mark;                 // unique to this answer; the same on all of them
  std::vector<BusinessCard> cards;  // of these ranks
};
// Blocks until all others have come or are given up. Throws evicted: there is no quorum, or the
// others cannot be found any more.
AgreedView agree_over_network(NetAgreement& agreement);

}  // namespace unisono::comm
