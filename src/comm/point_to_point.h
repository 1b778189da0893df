// send and recv with tags, over lanes of their own.
//
// A message is an envelope (tag, bytes), then its data in as many lane messages as it needs. One
// lane carries the messages of a pair in the order of the sends. A message whose tag no posted
// receive wants, while others are posted, is stored until it is wanted; with nothing posted it
// stays in the lane, so that a sender cannot fill the receiver's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace unisono::comm {

struct Transfer {
  bool send = false;
  int peer = 0;
  int tag = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  // State.
  bool opened = false;  // the envelope went out, or was matched
  bool shared = false;
  std::size_t done = 0;
  transport::Mark mark = 0;
};

class PointToPoint {
 public:
  PointToPoint(transport::Transport& transport, std::uint64_t group_id);

  // Transfers of one peer and direction move in the order of post(). A posted transfer must live
  // until it has finished.
  void post(Transfer& transfer);
  enum class Progress : std::uint8_t { idle, advanced, failed };
  Progress poll();
  static bool finished(const Transfer& transfer);
  // After failed: what is wrong, and with whom.
  const std::string& fault() const { return fault_; }
  int fault_peer() const { return fault_peer_; }
  bool has_pending() const;

 private:
  struct Envelope {
    std::int32_t tag = 0;
    std::uint32_t reserved = 0;
    std::uint64_t bytes = 0;
  };
  struct Stored {
    int tag = 0;
    std::vector<std::byte> data = {};
    std::size_t done = 0;
  };
  struct Peer {
    std::deque<Transfer*> sends = {};
    std::list<Transfer*> receives = {};
    std::list<Stored> stored = {};
    // The message that is coming in: into a receive, or into the store.
    bool coming = false;
    Transfer* receive = nullptr;
    Stored* store = nullptr;
  };
  Progress poll_sends(int peer);
  bool send_envelope(int peer, Transfer& transfer);
  Progress poll_receives(int peer);
  Progress take_data(int peer, const std::byte* data, std::size_t bytes);
  Progress open_message(int peer, const transport::Incoming& message);
  Progress serve_from_store(int peer);
  Progress size_mismatch(int peer, const Transfer& transfer, std::size_t sent);
  Progress fail(int peer, std::string what);
  void send_to_self(Transfer& transfer);

  transport::Transport& transport_;
  std::uint64_t signature_;
  std::vector<Peer> peers_;
  std::string fault_;
  int fault_peer_ = -1;
};

}  // namespace unisono::comm
