// The send and recv calls of a recording, for replay.h. Only their order is replayed: nothing is
// received before it is sent. The recording does not contain the time at which a sent message is
// received, so a send may end at any time.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace unisono::cli {

struct PlayedTransfer {
  // Group, sender, receiver (-1: a receive from any rank, without a matching send yet), tag.
  using Key = std::tuple<std::string, int, int, std::int64_t>;
  Key key = {};
  bool sends = false;
  double begin_us = 0;
  double end_us = std::numeric_limits<double>::infinity();

  int rank() const { return sends ? std::get<1>(key) : std::get<2>(key); }
  int peer() const { return sends ? std::get<2>(key) : std::get<1>(key); }
  // "rank 1 receives 8 bytes with tag 3 from rank 0 in world".
  std::string text() const;
};

class PlayedTransfers {
 public:
  // A recording may have no transfers. Throws UsageError, or an exception of nlohmann::json, if it
  // is incomplete.
  explicit PlayedTransfers(const nlohmann::ordered_json& trace);

  // The transfers that can be replayed: those of ranks with complete recordings.
  const std::vector<PlayedTransfer>& all() const { return transfers_; }
  int left_out() const { return left_out_; }

  void begin(const PlayedTransfer& transfer);
  // Returns false for a receive without a matching send yet.
  bool end(const PlayedTransfer& transfer);
  // "rank 0 waits for rank 2 to send, tag 3 in world": for transfers that have begun.
  std::vector<std::string> waits() const;

 private:
  struct Count {
    int sent = 0;
    int awaited = 0;  // receives that have begun
    int received = 0;
  };
  std::vector<PlayedTransfer> transfers_;
  int left_out_ = 0;
  std::map<PlayedTransfer::Key, Count> counts_;
};

}  // namespace unisono::cli
