// Both directions of one group's lane to one peer, with the window of every network
// (transport/window.h): the reader tells what it has released in every message, or in one of its
// own.
//
// A short message is copied behind its header, and goes as one. A longer one goes from where it
// lies: UCX asks the reader where it shall go, and reads or writes the memory of both sides. Where
// UCX would copy it all the same, it is not asked, and comes to a slot.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/lane_table.h"
#include "transport/memory.h"
#include "transport/window.h"

namespace unisono::ucx {

// What stands before a message, as it lies in memory: the ranks of a job have one byte order.
struct MessageHeader {
  std::uint64_t pass =
      0;  // proves the sender: the reader told it over the authenticated connection
  std::uint64_t group = 0;
  std::uint64_t signature = 0;
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;    // of the message in its lane, counted from 0
  std::uint32_t released = 0;  // messages of the other direction that its reader is done with
  std::uint32_t from = 0;      // rank of the world, times 256, and the kind
};
static_assert(sizeof(MessageHeader) == 40);

enum class MessageKind : std::uint8_t {
  message = 1,
  credit,  // says `released`, nothing else
  hello,   // the first word: the way from there to here is open
  leave,   // the last word; `signature` is how many messages went before it, on all lanes
};

struct UcxLane;
class UcxInbox;
class UcxLink;
class UcxOutbox;

struct OutMessage {
  // Where its bytes are until UCX needs them no more.
  enum class Storage : std::uint8_t { none, ring, slot, shared };

  UcxOutbox* outbox = nullptr;
  UcxLane* lane = nullptr;  // nullptr: a word of the link's own
  MessageHeader header = {};
  const std::byte* data = nullptr;  // in the ring: its header and behind it the payload
  std::size_t bytes = 0;            // of the payload
  Storage storage = Storage::none;
  bool done = true;
};

struct InMessage {
  // How far it is: not here; its header only, `descriptor` says what to fetch; on its way to
  // `data`; there.
  enum class State : std::uint8_t { none, announced, coming, complete };
  // Whose `data` is.
  enum class Storage : std::uint8_t { none, ring, slot, ucx, reader };

  UcxLane* lane = nullptr;
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::size_t bytes = 0;
  std::uint64_t signature = 0;
  State state = State::none;
  Storage storage = Storage::none;
};

// A message of the peer: its payload, or what to fetch it by.
struct PeerMessage {
  MessageHeader header;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool announced = false;  // `data` is a descriptor
  bool stays = false;      // `data` may be kept, and is UCX's
};

struct UcxLane {
  UcxLane(UcxLink* owner, UcxOutbox* sender, UcxInbox* receiver, const transport::LaneKey& name)
      : link(owner), inbox(receiver), key(name) {
    for (OutMessage& message : out) {
      message.outbox = sender;
      message.lane = this;
    }
    for (InMessage& message : in) {
      message.lane = this;
    }
    credit.outbox = sender;
    credit.lane = this;
  }
  UcxLane(const UcxLane&) = delete;
  UcxLane& operator=(const UcxLane&) = delete;

  OutMessage& outgoing(std::uint32_t number) noexcept { return out[number % transport::kMessages]; }
  InMessage& incoming(std::uint32_t number) noexcept { return in[number % transport::kMessages]; }
  bool is_quiet() const noexcept { return under_way == 0; }

  UcxLink* link;
  UcxInbox* inbox;
  transport::LaneKey key;
  bool open = false;    // a transport uses it; before, it only collects what comes early
  bool closed = false;  // and no transport does any more: it lives until nothing is under way

  transport::Pages out_memory{transport::kRingBytes};
  transport::MessageRing out_ring{out_memory.data()};
  std::array<OutMessage, transport::kMessages> out = {};
  // Messages given to the lane. Its user, who alone changes it, reads it without the mutex.
  std::uint32_t sent = 0;
  // UCX needs the memory of all before no more. Its user reads it without the mutex.
  std::atomic<std::uint32_t> drained = 0;
  std::uint32_t told = 0;      // the peer says that it is done with all before
  std::uint32_t released = 0;  // both
  transport::Window unreleased = {};
  std::byte* reserved = nullptr;
  std::size_t reserved_bytes = 0;

  transport::Pages in_memory{transport::kRingBytes};
  transport::MessageRing in_ring{in_memory.data()};
  bool in_ring_used = false;  // and the number of the message that was put there last
  std::uint32_t in_ring_latest = 0;
  std::array<InMessage, transport::kMessages> in = {};
  std::uint32_t next = 0;             // the message that peek() shows
  transport::Window unreported = {};  // released, and the peer has not heard of it
  transport::Window held = {};        // come and not released
  bool reader_fetches = false;        // its reader says where long messages shall go,
  bool reader_takes = false;          // or wants them in slots; neither: it has not asked yet
  OutMessage credit = {};
  bool credit_due = false;
  std::uint32_t announced = 0;  // messages come of which only the header is here
  int under_way = 0;            // requests that UCX has not ended
};

}  // namespace unisono::ucx
