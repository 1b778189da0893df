// A group's lane to one peer, in both directions, with the window that all networks use
// (transport/window.h). The reader reports releases in every message on the lane, or in a separate
// message.
//
// A short message is copied behind its header and sent with it. A longer message is sent directly
// from its memory: UCX asks the reader for the destination, and reads or writes the memory of both
// sides. If UCX would copy the data anyway, it does not ask, and the message goes to a slot.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/lane_table.h"
#include "transport/memory.h"
#include "transport/window.h"

namespace unisono::ucx {

// The header of a message, in native byte order: the ranks of a job all have the same byte order.
struct MessageHeader {
  std::uint64_t pass =
      0;  // proves the sender: the reader sent it over the authenticated connection
  std::uint64_t group = 0;
  std::uint64_t signature = 0;
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;    // of the message in its lane, counted from 0
  std::uint32_t released = 0;  // messages of the other direction that its reader has released
  std::uint32_t from = 0;      // world rank times 256, plus the kind
};
static_assert(sizeof(MessageHeader) == 40);

enum class MessageKind : std::uint8_t {
  message = 1,
  credit,  // only reports `released`
  hello,   // the first message: the path from there to here is open
  leave,   // the last message; `signature` is the number of messages before it, on all lanes
};

struct UcxLane;
class UcxInbox;
class UcxLink;
class UcxOutbox;

struct OutMessage {
  // Place of a message's bytes until UCX no longer needs them.
  enum class Storage : std::uint8_t { none, ring, slot, shared };

  UcxOutbox* outbox = nullptr;
  UcxLane* lane = nullptr;  // nullptr: a message of the link itself
  MessageHeader header = {};
  const std::byte* data = nullptr;  // in the ring: its header, then the payload
  std::size_t bytes = 0;            // of the payload
  Storage storage = Storage::none;
  bool done = true;
};

struct InMessage {
  // none: not arrived. announced: the header is here, with `descriptor` for fetching the bytes.
  // coming: being received into `data`. complete: all bytes are in `data`.
  enum class State : std::uint8_t { none, announced, coming, complete };
  // The owner of `data`.
  enum class Storage : std::uint8_t { none, ring, slot, ucx, reader };

  UcxLane* lane = nullptr;
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::size_t bytes = 0;
  std::uint64_t signature = 0;
  State state = State::none;
  Storage storage = Storage::none;
};

// A message of the peer: its payload, or the descriptor for fetching it.
struct PeerMessage {
  MessageHeader header;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool announced = false;  // `data` is a descriptor
  bool stays = false;      // `data` may be kept, and belongs to UCX
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
  bool open = false;    // a transport uses it; before, it only collects early messages
  bool closed = false;  // no transport uses it any more: it lives until nothing is in progress

  transport::Pages out_memory{transport::kRingBytes};
  transport::MessageRing out_ring{out_memory.data()};
  std::array<OutMessage, transport::kMessages> out = {};
  // Number of messages given to the lane. Only the lane's user changes it, and reads it without the
  // mutex.
  std::uint32_t sent = 0;
  // UCX no longer needs the memory of messages before this one. The lane's user reads it without
  // the mutex.
  std::atomic<std::uint32_t> drained = 0;
  std::uint32_t told = 0;      // the peer reports that it has released all before this one
  std::uint32_t released = 0;  // released by the peer and by UCX
  transport::Window unreleased = {};
  std::byte* reserved = nullptr;
  std::size_t reserved_bytes = 0;

  transport::Pages in_memory{transport::kRingBytes};
  transport::MessageRing in_ring{in_memory.data()};
  bool in_ring_used = false;  // and the number of the message that was put there last
  std::uint32_t in_ring_latest = 0;
  std::array<InMessage, transport::kMessages> in = {};
  std::uint32_t next = 0;             // the message that peek() shows
  transport::Window unreported = {};  // released, and not yet reported to the peer
  transport::Window held = {};        // received and not released
  bool reader_fetches = false;        // its reader names destinations for long messages,
  bool reader_takes = false;          // or wants them in slots; neither: it has not asked yet
  OutMessage credit = {};
  bool credit_due = false;
  std::uint32_t announced = 0;  // received messages of which only the header is here
  int under_way = 0;            // requests that UCX has not completed
};

}  // namespace unisono::ucx
