// Both directions of one group's lane to one peer: what has been sent and not yet released there,
// what has come and not yet been released here.
//
// The reader of a lane has room for kMessages messages, kShortWindow bytes of those that are short
// and a few slots of those that are long; the writer counts, and sends nothing beyond. So a lane
// that nobody reads takes that much memory at most, and nothing on the connection waits for it.
// The reader tells what it has released in every header that it sends anyway, or in a frame of its
// own once it is a quarter of what is short, or half of the slots.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/lane_table.h"
#include "transport/tcp/memory.h"
#include "transport/tcp/wire.h"

namespace unisono::tcp {

inline constexpr int kMostStreams = 4;
inline constexpr std::uint32_t kMessages = 256;  // of a lane at once; divides 2^32
inline constexpr std::size_t kShortBytes = std::size_t{16} << 10;
inline constexpr std::size_t kShortWindow = std::size_t{128} << 10;
// A message that does not fit before the end of the ring begins anew at its start.
inline constexpr std::size_t kRingBytes = kShortWindow + 2 * kShortBytes;

constexpr bool is_short(std::size_t bytes) noexcept {
  return bytes <= kShortBytes;
}
constexpr std::size_t room_of(std::size_t bytes) noexcept {
  return std::max<std::size_t>(64, (bytes + 63) / 64 * 64);
}

using transport::LaneKey;

// Short messages in a ring of memory, released in order.
class MessageRing {
 public:
  explicit MessageRing(std::byte* memory) : memory_(memory) {}

  // nullptr: no room.
  std::byte* place(std::size_t bytes) noexcept {
    const std::size_t room = room_of(bytes);
    if (used_ == 0) {
      head_ = 0;
      tail_ = 0;
    }
    const bool wrapped = used_ != 0 && head_ <= tail_;
    if (!wrapped && head_ + room > kRingBytes) {
      head_ = 0;
      return room <= tail_ ? take(room) : nullptr;
    }
    return head_ + room <= (wrapped ? tail_ : kRingBytes) ? take(room) : nullptr;
  }
  // The oldest.
  void release(const std::byte* data, std::size_t bytes) noexcept {
    const std::size_t room = room_of(bytes);
    tail_ = static_cast<std::size_t>(data - memory_) + room;
    used_ -= room;
  }

 private:
  std::byte* take(std::size_t room) noexcept {
    std::byte* data = memory_ + head_;
    head_ += room;
    used_ += room;
    return data;
  }

  std::byte* memory_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t used_ = 0;
};

// How much of a lane's window is taken.
struct Window {
  std::uint32_t messages = 0;
  std::size_t short_bytes = 0;
  std::uint32_t slots = 0;

  bool holds(std::size_t bytes, std::uint32_t most_slots) const noexcept {
    return messages < kMessages &&
           (is_short(bytes) ? short_bytes + room_of(bytes) <= kShortWindow : slots < most_slots);
  }
  void add(std::size_t bytes) noexcept {
    ++messages;
    short_bytes += is_short(bytes) ? room_of(bytes) : 0;
    slots += is_short(bytes) ? 0U : 1U;
  }
  void remove(std::size_t bytes) noexcept {
    --messages;
    short_bytes -= is_short(bytes) ? room_of(bytes) : 0;
    slots -= is_short(bytes) ? 0U : 1U;
  }
  // Whether its writer should be told by a frame that says nothing else.
  bool is_worth_a_frame(std::uint32_t most_slots) const noexcept {
    return messages >= kMessages / 4 || short_bytes >= kShortWindow / 4 ||
           slots >= std::max(most_slots / 2, 1U);
  }
};

struct Lane {
  // Where the bytes of an outgoing message are until the kernel has them.
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
    bool known = false;     // its header has come
    bool complete = false;  // and all of it
  };

  explicit Lane(const LaneKey& name) : key(name) {}
  Out& outgoing(std::uint32_t number) noexcept { return out[number % kMessages]; }
  In& incoming(std::uint32_t number) noexcept { return in[number % kMessages]; }
  // The peer is done with all before `count`. False: with more than it was sent.
  bool take_credit(std::uint32_t count) noexcept {
    // With several streams an older count may come after a newer one, however late.
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

  LaneKey key;
  bool open = false;  // a transport uses it; before, it only collects what comes early

  Pages out_memory{kRingBytes};
  MessageRing out_ring{out_memory.data()};
  std::array<Out, kMessages> out = {};
  std::uint32_t sent = 0;      // messages given to the lane
  std::uint32_t drained = 0;   // the kernel has all before
  std::uint32_t released = 0;  // the peer is done with all before
  Window unreleased = {};
  std::array<std::uint32_t, kMostStreams> cursor = {};   // of each stream: the next to write
  std::array<std::uint32_t, kMostStreams> waiting = {};  // and how many of them there are
  std::byte* reserved = nullptr;
  std::size_t reserved_bytes = 0;

  Pages in_memory{kRingBytes};
  MessageRing in_ring{in_memory.data()};
  std::array<In, kMessages> in = {};
  std::uint32_t next = 0;  // the message that peek() shows
  std::uint32_t come = 0;  // headers that have
  Window unreported = {};  // released, and the peer has not heard of it
  Window held = {};        // come and not released
  bool credit_due = false;
};

using LaneTable = transport::LaneTable<Lane>;

// nullptr, or std::bad_alloc: no memory.
inline std::unique_ptr<Lane> make_lane(const LaneKey& key) {
  auto lane = std::make_unique<Lane>(key);
  const bool has_memory = lane->in_memory.data() != nullptr && lane->out_memory.data() != nullptr;
  return has_memory ? std::move(lane) : nullptr;
}

}  // namespace unisono::tcp
