// Decides whether a link may have to delay messages.
#pragma once

#include <cstddef>
#include <vector>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

// The senders and the receivers over each link.
class LinkUsers {
 public:
  explicit LinkUsers(std::size_t links) : users_(links) {}

  void add(const PlayMessage& message, const PathTable& paths);
  // Links with messages that have neither the sender nor the receiver in common.
  std::vector<bool> meeting() const;

 private:
  static constexpr int kNobody = -1;
  struct Users {
    int from = kNobody;
    int to = kNobody;
  };

  std::vector<Users> users_;
};

// If all that could be under way over a link at once, each at the speed that it has alone, is more
// than the link carries. REQUIRES: an actor for each rank.
bool may_share_links(const Play& play, const PathTable& paths, int ports);

}  // namespace unisono::network_model
