// Decides whether a link may have to delay messages.
#pragma once

#include <cstddef>
#include <vector>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

// Records the senders and the receivers of each link.
class LinkUsers {
 public:
  explicit LinkUsers(std::size_t links) : users_(links) {}

  void add(const PlayMessage& message, const PathTable& paths);
  // Returns, by link, whether it carries messages that share neither the sender nor the receiver.
  std::vector<bool> meeting() const;

 private:
  static constexpr int kNobody = -1;
  struct Users {
    int from = kNobody;
    int to = kNobody;
  };

  std::vector<Users> users_;
};

// Returns true if a link may carry less than the sum of all messages that could be in transit on it
// at once, each at the speed that it has alone. REQUIRES: one actor per rank.
bool may_share_links(const Play& play, const PathTable& paths, int ports);

}  // namespace unisono::network_model
