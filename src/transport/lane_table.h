// All lanes to one peer, in all groups: lanes that transports have opened, lanes that only collect
// early frames, and the names of closed lanes, whose late frames are dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "transport/network.h"

namespace unisono::transport {

// Limit of groups that this rank has not opened yet and that have early frames. Frames of further
// groups are refused.
inline constexpr std::size_t kMostEarlyLanes = 256;
inline constexpr std::size_t kClosedLanes = 1024;  // closed groups whose late frames are known

struct LaneKey {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;

  bool counts() const noexcept { return group != kReportGroup; }  // in Network::frames()
  friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
};

// REQUIRES: `Lane` has a `key`, and a flag `open`, which is true while a transport uses the lane.
template <typename Lane>
class LaneTable {
 public:
  // Result of find(). found: the lane was found. stale: drop the frame. too_many: the peer exceeded
  // kMostEarlyLanes. no_memory: this system has no memory for a new lane.
  enum class Outcome : std::uint8_t { found, stale, too_many, no_memory };

  // Opens a lane for a transport. `make` returns a new lane; if there is no memory, it returns
  // nullptr or throws. open() then returns nullptr.
  template <typename Make>
  Lane* open(const LaneKey& key, const Make& make) noexcept {
    const auto early = lanes_.find(key);
    Lane* const lane = early != lanes_.end() ? early->second.get() : add(key, make);
    if (lane != nullptr && !lane->open) {
      lane->open = true;
      --early_;
    }
    return lane;
  }

  // Finds the lane that a frame names. If the lane is not open yet, finds or makes a lane that
  // collects early frames.
  template <typename Make>
  Outcome find(const LaneKey& key, Lane*& lane, const Make& make) noexcept {
    if (latest_ != nullptr && latest_->key == key) {
      lane = latest_;
      return Outcome::found;
    }
    return look_up(key, lane, make);
  }

  // Removes a lane; frames that arrive for it later are stale. Returns nullptr if the lane is not
  // in the table.
  std::unique_ptr<Lane> remove(Lane* lane) noexcept {
    const auto place = lanes_.find(lane->key);
    if (place == lanes_.end()) {
      return nullptr;
    }
    closed_[closed_count_++ % kClosedLanes] = lane->key;
    latest_ = latest_ == lane ? nullptr : latest_;
    early_ -= lane->open ? 0 : 1;
    std::erase(in_turn_, lane);
    std::unique_ptr<Lane> taken = std::move(place->second);
    lanes_.erase(place);
    return taken;
  }

  // Makes frames of earlier epochs stale.
  void retire_before(std::uint32_t epoch) noexcept { epoch_ = epoch; }
  std::uint32_t epoch() const noexcept { return epoch_; }
  std::size_t stale_frames() const noexcept { return stale_frames_; }
  // Returns the lanes in the order in which they were made.
  const std::vector<Lane*>& in_turn() const noexcept { return in_turn_; }

 private:
  template <typename Make>
  Outcome look_up(const LaneKey& key, Lane*& lane, const Make& make) noexcept {
    if (const auto found = lanes_.find(key); found != lanes_.end()) {
      lane = latest_ = found->second.get();
      return Outcome::found;
    }
    lane = nullptr;
    const auto known =
        closed_.begin() + static_cast<std::ptrdiff_t>(std::min(closed_count_, kClosedLanes));
    if (key.epoch < epoch_ || std::find(closed_.begin(), known, key) != known) {
      ++stale_frames_;
      return Outcome::stale;
    }
    if (early_ >= kMostEarlyLanes) {
      return Outcome::too_many;
    }
    lane = add(key, make);
    return lane != nullptr ? Outcome::found : Outcome::no_memory;
  }

  template <typename Make>
  Lane* add(const LaneKey& key, const Make& make) noexcept {
    try {
      std::unique_ptr<Lane> lane = make();
      if (lane == nullptr) {
        return nullptr;
      }
      in_turn_.reserve(in_turn_.size() + 1);
      latest_ = lanes_.emplace(key, std::move(lane)).first->second.get();
      in_turn_.push_back(latest_);
      ++early_;
      return latest_;
    } catch (...) {
      return nullptr;
    }
  }

  std::map<LaneKey, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> in_turn_;
  Lane* latest_ = nullptr;
  std::array<LaneKey, kClosedLanes> closed_ = {};
  std::size_t closed_count_ = 0;
  std::size_t early_ = 0;  // lanes that no transport has opened yet
  std::uint32_t epoch_ = 0;
  std::size_t stale_frames_ = 0;
};

}  // namespace unisono::transport
