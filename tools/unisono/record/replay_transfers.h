// The send and recv of a recording, for replay.h. Only their order is played: nothing is received
// before it is sent. When a send has been taken is not recorded, so it may end at any time.
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
  // A group, who sends, who receives (-1: from any, and nobody has sent it yet), a tag.
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
  // A recording may have none. Throws UsageError, or what nlohmann::json does, where it is not
  // whole.
  explicit PlayedTransfers(const nlohmann::ordered_json& trace);

  // The transfers that can be replayed: those of ranks with complete recordings.
  const std::vector<PlayedTransfer>& all() const { return transfers_; }
  int left_out() const { return left_out_; }

  void begin(const PlayedTransfer& transfer);
  // False: it receives what nobody has sent yet.
  bool end(const PlayedTransfer& transfer);
  // "rank 0 waits for rank 2 to send, tag 3 in world": of those that have begun.
  std::vector<std::string> waits() const;

 private:
  struct Count {
    int sent = 0;
    int awaited = 0;  // begun by the receiver, who need not have it
    int received = 0;
  };
  std::vector<PlayedTransfer> transfers_;
  int left_out_ = 0;
  std::map<PlayedTransfer::Key, Count> counts_;
};

}  // namespace unisono::cli
