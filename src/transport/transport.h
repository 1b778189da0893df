// The interface between the engine and the code that carries bytes.
//
// A lane is one ordered, reliable, one-way stream of messages. In a group of n ranks, a transport
// gives each rank these lanes, by number:
//   outgoing lane p      to rank p
//   outgoing lane n      multicast: one message that all other ranks read
//   incoming lane p      from rank p
//   incoming lane n + p  rank p's multicast
// Every message carries the signature of its operation, which the engine compares.
//
// No function here blocks, allocates or throws. Not thread-safe: one thread at a time drives a
// transport.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace unisono::transport {

struct Incoming {
  const std::byte* data = nullptr;  // valid until release(); nullptr: an offer
  std::size_t bytes = 0;
  std::uint64_t signature = 0;
  bool offered() const noexcept { return data == nullptr; }  // fetch() it
};

// A position in an outgoing lane. Once drained() confirms a mark, nobody reads the memory of data
// sent before the mark any more.
using Mark = std::uint32_t;

inline constexpr int kEveryLane = -1;

struct Limits {
  std::size_t inline_bytes = 0;  // limit of send()
  std::size_t slot_bytes = 0;    // limit of reserve()
  std::size_t lane_bytes = 0;    // of a message that a lane holds whole, before anybody reads it
  bool multicast = false;
  // True if sent data goes through the kernel. Shared memory is then read only until the kernel has
  // copied it, and data that the kernel does not take at once needs flush().
  bool through_kernel = false;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const noexcept = 0;
  virtual int ranks() const noexcept = 0;
  virtual const Limits& limits() const noexcept = 0;

  // Returns true if the next message of a lane has arrived, and describes it in `message`; the
  // result stays the same until release().
  virtual bool peek(int lane, Incoming& message) noexcept = 0;
  virtual void release(int lane) noexcept = 0;
  // As peek(), for a reader that copies the whole message to one place. The message may be reported
  // before its bytes have arrived; the reader must then fetch() them.
  virtual bool peek_unread(int lane, Incoming& message) noexcept { return peek(lane, message); }

  // Copies a short message into the lane. Returns false if there is no room now.
  virtual bool send(int lane, const void* data, std::size_t bytes,
                    std::uint64_t signature) noexcept = 0;
  // Returns room in which the caller writes a message; the same room until commit(). Returns
  // nullptr if there is no room now.
  virtual std::byte* reserve(int lane, std::size_t bytes) noexcept = 0;
  virtual void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept = 0;

  // Copies into this room in the way that is best for the lane's readers. The message may be
  // committed after the call.
  virtual void fill(int lane, std::byte* room, const void* data, std::size_t bytes) noexcept;
  // Returns the kind of store that suits the lane's readers best, for a caller that writes so many
  // bytes itself. A caller that uses streaming stores must fence.
  virtual kernels::Store store(int lane, std::size_t bytes) const noexcept;

  // Returns how many bytes of this memory one call of share() accepts. Returns 0 if the readers of
  // the lane (or, for kEveryLane, of every lane) cannot read all of the memory directly. The limit
  // differs between lanes.
  virtual std::size_t shareable_bytes(int lane, const void* data, std::size_t bytes) noexcept = 0;
  // Sends a reference to shareable memory, which must not change until drained(). Returns false if
  // there is no room now.
  virtual bool share(int lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept = 0;
  // Returns true if a message is best offered: the readers of the lane fetch it directly from its
  // memory, whole, into one place. The writer then waits for its readers, even if the message would
  // fit into the lane.
  virtual bool can_offer(int lane, const void* data, std::size_t bytes) noexcept;
  // As share(), for a message, or the rest of one, that can_offer() accepts.
  virtual bool offer(int lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept;
  // Copies from the next message, which must be an offer or unread. Successive calls must copy the
  // message from its beginning to its end, into one place. This place must stay valid until the
  // message is complete or close() is called. Returns the number of bytes copied, a multiple of 64
  // except at the end. Returns 0 if no bytes are available now, or if the writer is gone or has
  // freed the memory.
  virtual std::size_t fetch(int lane, std::size_t offset, void* target, std::size_t bytes) noexcept;
  virtual Mark mark(int lane) const noexcept = 0;
  virtual bool drained(int lane, Mark mark) noexcept = 0;
  // Sends data of a lane, or of every lane, that is still in this process. Returns true if none is
  // left. A rank that stops calling flush() earlier keeps its peers waiting.
  virtual bool flush(int /*lane*/) noexcept { return true; }
  // Takes back the memory of messages that all readers have released. Returns true if no sent data
  // is left here.
  virtual bool reclaim() noexcept { return flush(kEveryLane); }
  // Stops sending, receiving, and reading shared memory. Called after an abort, when shared memory
  // belongs to its owner again.
  virtual void close() noexcept {}
  // Prepares for destruction in a forked child, where threads that do not exist may have held
  // locks. Afterwards only the destructor may be called, which then takes no lock.
  virtual void abandon() noexcept {}
  // Returns the rank that has released the fewest messages of an outgoing lane, as far as the
  // writer knows. Used in reports about waiting ranks.
  virtual int slowest_reader(int lane) noexcept = 0;
};

inline void Transport::fill(int, std::byte* room, const void* data, std::size_t bytes) noexcept {
  kernels::copy(room, data, bytes, kernels::Store::cached);
}
inline bool Transport::can_offer(int, const void*, std::size_t) noexcept {
  return false;
}
inline bool Transport::offer(int, const void*, std::size_t, std::uint64_t) noexcept {
  return false;
}
inline std::size_t Transport::fetch(int, std::size_t, void*, std::size_t) noexcept {
  return 0;
}
inline kernels::Store Transport::store(int, std::size_t) const noexcept {
  return kernels::Store::cached;
}

}  // namespace unisono::transport
