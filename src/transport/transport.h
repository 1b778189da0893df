// The seam between the engine and what carries bytes.
//
// A lane is one ordered, reliable, one-way stream of messages. A transport of a group of n ranks
// gives each rank, by number:
//   outgoing lane p      to rank p
//   outgoing lane n      multicast: one message that all other ranks read
//   incoming lane p      from rank p
//   incoming lane n + p  rank p's multicast
// Every message carries the signature of the operation it belongs to; the engine compares it.
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

// A place in an outgoing lane: the memory of everything sent up to it is not looked at any more
// once drained() says so.
using Mark = std::uint32_t;

inline constexpr int kEveryLane = -1;

struct Limits {
  std::size_t inline_bytes = 0;  // at most this much goes through send()
  std::size_t slot_bytes = 0;    // at most this much goes through reserve()
  bool multicast = false;
  // What is sent goes to the kernel: it looks at shared memory no longer than until it has it, and
  // what it does not take at once needs flush().
  bool through_kernel = false;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const noexcept = 0;
  virtual int ranks() const noexcept = 0;
  virtual const Limits& limits() const noexcept = 0;

  // The next message of a lane, if it has come. The same message until release().
  virtual bool peek(int lane, Incoming& message) noexcept = 0;
  virtual void release(int lane) noexcept = 0;
  // Like peek(), for a reader who copies the message as it is into one place: it may be shown
  // before its bytes have come, to be fetched.
  virtual bool peek_unread(int lane, Incoming& message) noexcept { return peek(lane, message); }

  // Copies a short message into the lane. False: no room now.
  virtual bool send(int lane, const void* data, std::size_t bytes,
                    std::uint64_t signature) noexcept = 0;
  // Room to write a message in place; the same room until commit(). nullptr: no room now.
  virtual std::byte* reserve(int lane, std::size_t bytes) noexcept = 0;
  virtual void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept = 0;

  // Copies into that room, in the way that is best for the readers of the lane. It may be
  // committed when this returns.
  virtual void fill(int lane, std::byte* room, const void* data, std::size_t bytes) noexcept;
  // Which stores are best for somebody else who writes so many bytes that they read; a writer that
  // streams must fence.
  virtual kernels::Store store(int lane, std::size_t bytes) const noexcept;

  // If the readers of a lane, or of every lane, can read all of this memory where it is: how much
  // of it goes through share() at once. 0: they cannot. Each lane has a limit of its own.
  virtual std::size_t shareable_bytes(int lane, const void* data, std::size_t bytes) noexcept = 0;
  // Sends a reference to shareable memory: it must not change until drained(). False: no room now.
  virtual bool share(int lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept = 0;
  // Whether a message of any memory is best offered: the readers of the lane fetch it where it is.
  // For readers who copy it as it is, into one place. Never so for one that the lane has room for:
  // its writer would wait for its readers where it did not before.
  virtual bool can_offer(int lane, const void* data, std::size_t bytes) noexcept;
  // Like share(), of a message that can_offer(), or the rest of one.
  virtual bool offer(int lane, const void* data, std::size_t bytes,
                     std::uint64_t signature) noexcept;
  // Copies from the next message, which is an offer or unread, from `offset` on: from its beginning
  // to its end, into one place, which stays until the message has come whole or close(). Returns
  // how many of these bytes it copied, a multiple of 64 but at the end; 0: none now, or its writer
  // is no more or has given the memory up.
  virtual std::size_t fetch(int lane, std::size_t offset, void* target, std::size_t bytes) noexcept;
  virtual Mark mark(int lane) const noexcept = 0;
  virtual bool drained(int lane, Mark mark) noexcept = 0;
  // Moves on what was sent over a lane, or over every lane, and has not left this process. True:
  // nothing is left. A rank that stops calling before keeps its peers waiting.
  virtual bool flush(int /*lane*/) noexcept { return true; }
  // Takes back the memory of messages that all readers are done with. True: nothing that was sent
  // is left here.
  virtual bool reclaim() noexcept { return flush(kEveryLane); }
  // Nothing is sent or received any more, and nothing of what was shared is looked at: after an
  // abort, when that memory is its owner's again.
  virtual void close() noexcept {}
  // In the child of a fork, where threads that are no more may have held locks: after it, nothing
  // but the destructor may be called, which then takes no lock.
  virtual void abandon() noexcept {}
  // For messages: the rank that has released least of an outgoing lane, as far as the writer knows.
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
