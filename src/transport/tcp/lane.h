// A group's lane to one peer, in both directions: messages that were sent and that the peer has not
// released, and messages that were received and that this rank has not released.
//
// All networks use the same window (transport/window.h). Every header on the lane also reports
// releases; if no header is due, a separate frame reports them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/lane_table.h"
#include "transport/memory.h"
#include "transport/window.h"

namespace unisono::tcp {

inline constexpr int kMostStreams = 4;

struct Lane {
  // Place of an outgoing message's bytes until the kernel has taken them.
  enum class Storage : std::uint8_t { none, ring, slot, shared };
  struct Out {
    const std::byte* data = nullptr;
    std::uint64_t signature = 0;
    std::uint32_t bytes = 0;
    std::uint32_t sum = 0;
    Storage storage = Storage::none;
    std::uint8_t stream = 0;
    bool written = false;
  };
  struct In {
    std::byte* data = nullptr;
    std::uint64_t signature = 0;
    std::uint32_t bytes = 0;
    bool known = false;     // its header has arrived
    bool complete = false;  // and all of its payload
  };

  explicit Lane(const transport::LaneKey& name) : key(name) {}
  Out& outgoing(std::uint32_t number) noexcept { return out[number % transport::kMessages]; }
  In& incoming(std::uint32_t number) noexcept { return in[number % transport::kMessages]; }
  // Notes that the peer has released all messages before `count`. Returns false if this rank has
  // not sent so many messages.
  bool take_credit(std::uint32_t count) noexcept {
    // With several streams, an older count may arrive after a newer one, even much later.
    if (static_cast<std::int32_t>(count - released) <= 0) {
      return true;
    }
    if (count - released > drained - released) {
      return false;
    }
    for (; released != count; ++released) {
      unreleased.remove(outgoing(released).bytes);
    }
    return true;
  }

  transport::LaneKey key;
  bool open = false;  // a transport uses it; before, it only collects early frames

  transport::Pages out_memory{transport::kRingBytes};
  transport::MessageRing out_ring{out_memory.data()};
  std::array<Out, transport::kMessages> out = {};
  std::uint32_t sent = 0;      // messages given to the lane
  std::uint32_t drained = 0;   // the kernel has all messages before this one
  std::uint32_t released = 0;  // the peer has released all messages before this one
  transport::Window unreleased = {};
  std::array<std::uint32_t, kMostStreams> cursor = {};   // per stream: the next message to write
  std::array<std::uint32_t, kMostStreams> waiting = {};  // and the number of pending messages
  std::byte* reserved = nullptr;
  std::size_t reserved_bytes = 0;

  transport::Pages in_memory{transport::kRingBytes};
  transport::MessageRing in_ring{in_memory.data()};
  std::array<In, transport::kMessages> in = {};
  std::uint32_t next = 0;             // the message that peek() shows
  std::uint32_t come = 0;             // headers received
  transport::Window unreported = {};  // released, and not yet reported to the peer
  transport::Window held = {};        // received and not released
  bool credit_due = false;
};

using LaneTable = transport::LaneTable<Lane>;

// If there is no memory, returns nullptr or throws std::bad_alloc.
inline std::unique_ptr<Lane> make_lane(const transport::LaneKey& key) {
  auto lane = std::make_unique<Lane>(key);
  const bool has_memory = lane->in_memory.data() != nullptr && lane->out_memory.data() != nullptr;
  return has_memory ? std::move(lane) : nullptr;
}

}  // namespace unisono::tcp
