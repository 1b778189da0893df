#include "network_model/simulator/sharing.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

namespace unisono::network_model {
namespace {

// Visits each path of a block once, in order, with a message that takes it. Returns false if the
// visitor stopped.
template <typename Visit>
bool visit_paths(const PlayBlock& block, std::vector<bool>& seen, const Visit& visit) {
  for (const PlayMessage& message : block.messages) {
    const auto number = static_cast<std::size_t>(message.path);
    seen.resize(std::max(seen.size(), number + 1));
    if (!message.is_local() && !seen[number]) {
      seen[number] = true;
      if (!visit(message)) {
        return false;
      }
    }
  }
  return true;
}

// Visits the paths of a play. The paths of streamed blocks are visited again for every block.
template <typename Visit>
void for_each_path(const Play& play, const Visit& visit) {
  std::vector<bool> seen;
  const std::vector<PlayBlock>* last = nullptr;
  for (const PlayItem& item : play.items) {
    if (!item.is_operation() || (item.blocks != nullptr && item.blocks.get() == last)) {
      continue;
    }
    last = item.blocks.get();
    for (std::size_t i = 0; i < item.block_count(); ++i) {
      if (item.source != nullptr) {
        seen.clear();
      }
      if (!visit_paths(item.block(i), seen, visit)) {
        return;
      }
    }
  }
}

std::vector<bool> meeting_links(const Play& play, const PathTable& paths) {
  if (play.items.size() == 1 && play.items.front().source != nullptr) {
    return play.items.front().source->meeting();
  }
  LinkUsers users(paths.bytes_per_us().size());
  for_each_path(play, [&](const PlayMessage& message) {
    users.add(message, paths);
    return true;
  });
  return users.meeting();
}

// Bounds the load of each link: each sender and each receiver has at most one message in transit
// per port.
class LinkLoads {
 public:
  // Examines only the links where messages can meet. Keeps the reference.
  LinkLoads(const PathTable& paths, int ports, std::vector<bool> meeting)
      : paths_(paths), ports_(ports), meeting_(std::move(meeting)), loads_(meeting_.size()) {
    if (ports > 1) {
      meeting_.assign(meeting_.size(), true);
    }
  }

  bool may_meet() const {
    return std::find(meeting_.begin(), meeting_.end(), true) != meeting_.end();
  }
  // Returns false if a link may be overloaded.
  bool add(const PlayMessage& message) {
    const Path& path = paths_.path(message.path);
    const std::span<const double> shares = paths_.shares(path);
    for (std::size_t i = 0; i < path.count; ++i) {
      const int link = paths_.links(path)[i];
      const auto index = static_cast<std::size_t>(link);
      if (!meeting_[index]) {
        continue;
      }
      const double rate = path.bytes_per_us * ports_ * (shares.empty() ? 1 : shares[i]);
      Load& load = loads_[index];
      raise(link, message.from, rate, true, load.by_senders);
      raise(link, message.to, rate, false, load.by_receivers);
      constexpr double kRounding = 1 + 1e-12;
      if (std::min(load.by_senders, load.by_receivers) > paths_.bytes_per_us()[index] * kRounding) {
        return false;
      }
    }
    return true;
  }

 private:
  struct Load {
    double by_senders = 0;
    double by_receivers = 0;
  };

  void raise(int link, int actor, double rate, bool sends, double& load) {
    const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(link)) << 32U |
                     static_cast<std::uint32_t>(actor);
    auto& rates = known_[key];
    double& last = sends ? rates.first : rates.second;
    load += std::max(0.0, rate - last);
    last = std::max(rate, last);
  }

  const PathTable& paths_;
  int ports_;
  std::vector<bool> meeting_;
  std::vector<Load> loads_;
  std::unordered_map<std::uint64_t, std::pair<double, double>> known_;  // by link and actor
};

// If a first block, a small part of all messages, already shares links, the decision needs no other
// blocks.
bool first_block_shares(const Play& play, const PathTable& paths, int ports) {
  const PlayItem& item = play.items.front();
  constexpr std::size_t kManyBlocks = 64;
  if (item.source == nullptr || item.block_count() < kManyBlocks) {
    return false;
  }
  const PlayBlock& block = item.block(0);
  LinkUsers users(paths.bytes_per_us().size());
  for (const PlayMessage& message : block.messages) {
    users.add(message, paths);
  }
  LinkLoads loads(paths, ports, users.meeting());
  return !std::all_of(block.messages.begin(), block.messages.end(),
                      [&](const PlayMessage& message) { return loads.add(message); });
}

}  // namespace

void LinkUsers::add(const PlayMessage& message, const PathTable& paths) {
  constexpr int kSeveral = -2;
  const auto join = [](int known, int other) {
    return known == kNobody || known == other ? other : kSeveral;
  };
  for (const int link : paths.links(paths.path(message.path))) {
    Users& known = users_[static_cast<std::size_t>(link)];
    known = {.from = join(known.from, message.from), .to = join(known.to, message.to)};
  }
}

std::vector<bool> LinkUsers::meeting() const {
  std::vector<bool> meeting;
  meeting.reserve(users_.size());
  for (const Users& known : users_) {
    meeting.push_back(known.from < kNobody && known.to < kNobody);
  }
  return meeting;
}

bool may_share_links(const Play& play, const PathTable& paths, int ports) {
  if (play.items.size() == 1 && first_block_shares(play, paths, ports)) {
    return true;
  }
  LinkLoads loads(paths, ports, meeting_links(play, paths));
  bool shared = false;
  if (loads.may_meet()) {
    for_each_path(play, [&](const PlayMessage& message) {
      shared = !loads.add(message);
      return !shared;
    });
  }
  return shared;
}

}  // namespace unisono::network_model
