// send and recv with tags, on lanes of their own.
//
// A short message is one lane message, whose signature contains the tag and the element type. A
// longer message is an envelope (tag, type, bytes), followed by its data in as many lane messages
// as needed. All messages between two ranks share one lane, in the order of the sends. If the next
// message matches no posted receive, but other receives are posted, the message is stored. If no
// receive is posted, the message stays in the lane, so that a sender cannot fill the receiver's
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/send.h"
#include "unisono/types.hpp"

namespace unisono::detail {

struct RequestState;

}  // namespace unisono::detail

namespace unisono::comm {

// A Dtype's number plus one, which travels with a message. kAnyType stands for bytes, which match
// any type.
using ElementType = std::uint8_t;
inline constexpr ElementType kAnyType = 0;
constexpr ElementType element_type(Dtype dtype) noexcept {
  return static_cast<ElementType>(static_cast<int>(dtype) + 1);
}

// A longer transfer is not begun by its post, because its caller wants to compute meanwhile.
inline constexpr std::size_t kShortTransfer = std::size_t{64} << 10;

struct PendingTransfer {
  // The request to notify on completion (take_finished()). If it is nullptr, the poster polls
  // instead.
  detail::RequestState* owner = nullptr;
  bool send = false;
  int peer = 0;  // in a receive kAnySource until its message has come
  int tag = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // in a receive the room for the message, and its length once it has come
  bool may_wait = false;  // a send that may wait for its receiver, because its caller receives, too
  bool exact = false;     // a receive that a shorter message does not match either
  ElementType type = kAnyType;
  // State.
  bool opened = false;  // the envelope was sent, or was matched
  bool shared = false;
  bool posted = false;  // a send that is in its queue
  std::size_t done = 0;
  transport::Mark mark = 0;
  std::uint64_t recorded = 0;       // the index of its event, if there is a recording
  PendingTransfer* next = nullptr;  // in the queue that it waits in
  std::size_t place = 0;            // its index among the owner's posted transfers
};

// A queue of transfers in the order of post(). The transfers themselves hold the links, so posting
// allocates nothing.
class TransferQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  PendingTransfer& front() const noexcept { return *first_; }
  void push(PendingTransfer& transfer) noexcept {
    transfer.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &transfer;
    last_ = &transfer;
  }
  // REQUIRES: !empty().
  PendingTransfer& pop() noexcept {
    PendingTransfer& transfer = *first_;
    first_ = transfer.next;
    return transfer;
  }

 private:
  PendingTransfer* first_ = nullptr;
  PendingTransfer* last_ = nullptr;
};

// Receives that wait for messages, by tag. The time to find the first receive of a tag does not
// depend on the number of posted receives.
class ReceiveQueues {
 public:
  bool empty() const noexcept { return size_ == 0; }
  void push(PendingTransfer& transfer) {
    if (latest_ == nullptr || latest_tag_ != transfer.tag) {
      latest_ = &by_tag_[transfer.tag];
      latest_tag_ = transfer.tag;
    }
    latest_->push(transfer);
    ++size_;
  }
  // Removes and returns the first receive with this tag; nullptr if there is none.
  PendingTransfer* take(int tag) noexcept {
    TransferQueue* const queue = size_ == 0 ? nullptr : find(tag);
    if (queue == nullptr || queue->empty()) {
      return nullptr;
    }
    --size_;
    PendingTransfer& first = queue->pop();
    if (queue->empty() && by_tag_.size() > kKeptTags) {
      latest_ = queue == latest_ ? nullptr : latest_;
      by_tag_.erase(tag);
    }
    return &first;
  }

 private:
  TransferQueue* find(int tag) noexcept {
    if (latest_ != nullptr && latest_tag_ == tag) {
      return latest_;
    }
    const auto found = by_tag_.find(tag);
    return found == by_tag_.end() ? nullptr : &found->second;
  }

  // Number of empty queues that are kept, because programs reuse their tags.
  static constexpr std::size_t kKeptTags = 64;
  std::unordered_map<int, TransferQueue> by_tag_;
  // The queue of the latest receive. Most programs post one receive at a time, so they need no
  // look-up.
  TransferQueue* latest_ = nullptr;
  int latest_tag_ = 0;
  std::size_t size_ = 0;
};

class PointToPoint {
 public:
  // `name` returns the name of a group rank for error texts.
  PointToPoint(transport::Transport& transport, std::uint64_t group_id,
               std::function<std::string(int)> name);

  // Transfers with one peer in one direction progress in the order of post(). If two receives match
  // a message, the receive that names the sender gets it. A posted transfer must live until it has
  // finished. A short send may finish in post().
  void post(PendingTransfer& transfer);
  // Sends a short message, if it is next and its lane has room, and if the transport needs no later
  // flush(). Returns false if it was not sent.
  bool send_now(PendingTransfer& transfer) noexcept;
  enum class Progress : std::uint8_t { idle, advanced, failed };
  Progress poll();
  static bool finished(const PendingTransfer& transfer);
  // Returns the next finished transfer that has an owner; nullptr if there is none.
  PendingTransfer* take_finished() noexcept { return done_.empty() ? nullptr : &done_.pop(); }
  // After poll() has failed: the fault, and the peer that it concerns.
  const std::string& fault() const { return fault_; }
  int fault_peer() const { return fault_peer_; }

 private:
  struct Envelope {
    std::int32_t tag = 0;
    std::uint32_t type = kAnyType;
    std::uint64_t bytes = 0;
  };
  struct Stored {
    int tag = 0;
    ElementType type = kAnyType;
    std::vector<std::byte> data = {};
    std::size_t done = 0;
  };
  struct Peer {
    TransferQueue sends = {};
    ReceiveQueues receives = {};
    std::unordered_map<int, std::list<Stored>> stored = {};  // by tag, in the order of arrival
    std::vector<int> servable = {};  // tags of stored messages that a receive may match now
    bool busy = false;               // in busy_
    // The message that is being received, either into a posted receive or into the store.
    bool coming = false;
    std::size_t fetched = 0;  // bytes fetched of the lane's next message, if that is an offer
    PendingTransfer* receive = nullptr;
    Stored* store = nullptr;
  };
  Progress poll_sends(int peer);
  bool open_send(int peer, PendingTransfer& transfer) noexcept;
  std::uint64_t short_signature(const PendingTransfer& transfer) const noexcept {
    return short_signature_ ^ (std::uint64_t{transfer.type} << 32) ^
           static_cast<std::uint32_t>(transfer.tag);
  }
  Progress poll_receives(int peer);
  Progress take_data(int peer, const std::byte* data, std::size_t bytes);
  Progress open_message(int peer, const transport::Incoming& message);
  Progress serve_from_store(int peer);
  Progress serve_from_store(int peer, int tag);
  void note_receive(int peer, int tag);
  void note_finished(PendingTransfer& transfer) noexcept;
  PendingTransfer* take_wanted(int peer, int tag);
  void keep_busy(int peer);
  // Sets the length of a receive to the length of its message. Returns false if the message does
  // not fit.
  static bool fits(PendingTransfer& receive, std::size_t sent, std::uint32_t type) noexcept;
  Progress mismatch(int peer, const PendingTransfer& receive, std::size_t bytes,
                    std::uint32_t type);
  Progress fail(int peer, std::string what);
  void send_to_self(PendingTransfer& transfer);

  transport::Transport& transport_;
  transport::SendLimits send_limits_;
  std::function<std::string(int)> name_;
  std::uint64_t signature_;
  std::uint64_t short_signature_;  // the tag is in its lower half, the type in the byte above
  std::vector<Peer> peers_;        // never resized: the queues point into it
  std::vector<int> busy_;          // peers with posted or incoming transfers
  TransferQueue done_;             // finished transfers with an owner
  ReceiveQueues from_any_;         // receives from any source
  std::string fault_;
  int fault_peer_ = -1;
};

}  // namespace unisono::comm
