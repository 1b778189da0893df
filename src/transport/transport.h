// The interface between the engine and the code that carries bytes.
//
// A lane is one ordered, reliable, one-way stream of messages. A transport of a group of n ranks
// gives each rank, by number:
//   outgoing lane p      to rank p
//   outgoing lane n      multicast: one message that all other ranks read
//   incoming lane p      from rank p
//   incoming lane n + p  rank p's multicast
// Every message has the signature of its operation, which the engine compares.
//
// Nothing here blocks, allocates or throws. Not thread-safe: one thread at a time drives a
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

// A position in an outgoing lane: once drained() confirms it, the memory of everything sent before
// it is not read any more.
using Mark = std::uint32_t;

inline constexpr int kEveryLane = -1;

struct Limits {
  std::size_t inline_bytes = 0;  // limit of send()
  std::size_t slot_bytes = 0;    // limit of reserve()
  bool multicast = false;
  // Sent data goes through the kernel: shared memory is read only until the kernel has it, and data
  // that the kernel does not take at once needs flush().
  bool through_kernel = false;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const noexcept = 0;
  virtual int ranks() const noexcept = 0;
  virtual const Limits& limits() const noexcept = 0;

  // Returns the next message of a lane, if it has arrived; the same message until release().
  virtual bool peek(int lane, Incoming& message) noexcept = 0;
  virtual void release(int lane) noexcept = 0;
  // As peek(), for a reader that copies the whole message to one place: the message may be shown
  // before its bytes have arrived, to be fetched.
  virtual bool peek_unread(int lane, Incoming& message) noexcept { return peek(lane, message); }

  // Copies a short message into the lane. Returns false if there is no room now.
  virtual bool send(int lane, const void* data, std::size_t bytes,
                    std::uint64_t signature) noexcept = 0;
  // Returns room to write a message in place; the same room until commit(). nullptr: no room now.
  virtual std::byte* reserve(int lane, std::size_t bytes) noexcept = 0;
  virtual void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept = 0;

  // Copies into that room in the way that is best for the lane's readers. The message may be
  // committed when this returns.
  virtual void fill(int lane, std::byte* room, const void* data, std::size_t bytes) noexcept;
  // Returns the kind of store that is best for another writer of so many bytes that they read. A
  // writer that uses streaming stores must fence.
  virtual kernels::Store store(int lane, std::size_t bytes) const noexcept;

  // Returns how much of this memory can be passed to share() at once, if the readers of a lane (or
  // of every lane) can read all of it directly; 0: they cannot. Each lane has its own limit.
  virtual std::size_t shareable_bytes(int lane, const void* data, std::size_t bytes) noexcept = 0;
  // Sends a reference to shareable memory, which must not change until drained(). Returns false if
  // there is no room now.
  virtual bool share(int lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept = 0;
  // Returns true if a message is best offered: the readers of the lane fetch it directly from its
  // memory, whole, into one place. Must return false if the message fits into the lane; offering it
  // would make the writer wait for its readers.
  virtual bool can_offer(int lane, const void* data, std::size_t bytes) noexcept;
  // As share(), for a message, or the rest of one, that can_offer() accepts.
  virtual bool offer(int lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept;
  // Copies from the next message, which is an offer or unread: from `offset` on, from its beginning
  // to its end, into one place that must stay until the message is complete or close() is called.
  // Returns the number of bytes copied, a multiple of 64 except at the end; 0: none now, or its
  // writer is gone or has freed the memory.
  virtual std::size_t fetch(int lane, std::size_t offset, void* target, std::size_t bytes) noexcept;
  virtual Mark mark(int lane) const noexcept = 0;
  virtual bool drained(int lane, Mark mark) noexcept = 0;
  // Sends data of a lane, or of every lane, that has not left this process. Returns true if none is
  // left. A rank that stops calling earlier keeps its peers waiting.
  virtual bool flush(int /*lane*/) noexcept { return true; }
  // Takes back the memory of messages that all readers have released. Returns true if no sent data
  // is left here.
  virtual bool reclaim() noexcept { return flush(kEveryLane); }
  // Stops sending and receiving, and reading shared memory: after an abort, when that memory
  // belongs to its owner again.
  virtual void close() noexcept {}
  // For the child of a fork, in which threads that do not exist may have held locks: afterwards
  // only the destructor may be called, which then takes no lock.
  virtual void abandon() noexcept {}
  // For messages: returns the rank that has released least of an outgoing lane, as far as the
  // writer knows.
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
