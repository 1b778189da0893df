// Which ranks of several hosts go on after a failure. The lowest rank that can be reached
// coordinates: the others find it where it listened while they met, prove the token, and say which
// ranks of their own host are proved to be gone. It tells all who came who goes on. If it dies
// before, the next one coordinates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"

namespace unisono::comm {

struct NetAgreement {
  tcp::Identity self;  // of the world that ends
  // By rank: where it can be found. This one's own sockets, reserved there.
  const std::vector<std::vector<tcp::Address>>& addresses;
  std::vector<UniqueFd>& endpoints;
  BusinessCard mine;                 // of this rank, in the world to come
  std::function<bool(int)> is_gone;  // proved
  // How long a rank may still take to come whose connection has failed, or that has left, in
  // ms. -1: it can be reached, and is waited for. 0: it has left.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: for ever
  bool quorum = true;
  // The last answer that this rank got, where it could not meet the others of it: they may have
  // gone on, so that no smaller part of them may.
  std::vector<int> last;
};
struct AgreedView {
  std::vector<int> ranks;           // that go on, in ascending order
  std::string mark;                 // the same for all of them, and of this answer alone
  std::vector<BusinessCard> cards;  // of those
};
// Blocks until all others have come or are given up. Throws evicted: there is no quorum, or the
// others are not to be found any more.
AgreedView agree_over_network(NetAgreement& agreement);

}  // namespace unisono::comm
