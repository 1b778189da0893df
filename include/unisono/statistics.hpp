// Statistics: the number and the bytes of a communicator's calls on this rank, the time spent
// moving data, and the time spent waiting for each rank. Statistics are always recorded, at a cost
// of a few nanoseconds per call.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "unisono/export.hpp"

namespace unisono {

struct Statistics {
  // Histogram of waiting time per call. skew[0] counts the calls that waited less than a
  // microsecond. skew[k] counts the calls that waited at least 2^(k-1) and less than 2^k
  // microseconds. The last bucket also counts all calls that waited longer.
  static constexpr int kSkewBuckets = 24;

  // All calls of one kind.
  struct Row {
    std::string what;         // "all_reduce", ..., "send", "recv"
    std::uint64_t calls = 0;  // all started calls
    // The sum over the calls of the larger of input and output; for receives, the sum of the
    // messages' lengths.
    std::uint64_t bytes = 0;
    // Time in blocking calls, without waiting. For calls below 32 KiB, one call in 64 is timed, and
    // its time counts 64 times.
    double moving_s = 0;
    // Waiting time in blocking calls and in Request::wait(). A call waits if it makes no progress
    // for about a microsecond or more, because a peer has not yet entered the call, sent its data,
    // or read this rank's data. Waits of the progress thread do not count, because they delay no
    // thread. Waits for asynchronous sends and receives do not count.
    double waiting_s = 0;
    // For each rank of the group, the waiting time that this rank caused. If several ranks are
    // late, the time counts for one late rank until this rank arrives. If a rank on this host has
    // not entered the call, the time counts for this rank even if its data reaches the waiting rank
    // only through other ranks, as in a ring. If the late rank is on another host, the time counts
    // for the rank whose message is missing. The sum over all ranks is waiting_s without the waits
    // of receives from any rank.
    std::vector<double> waiting_for_s;
    std::array<std::uint64_t, kSkewBuckets> skew = {};
  };

  std::vector<Row> rows;  // of called kinds: collectives in enum order, then send, recv

  // Local. Returns a readable table.
  UNISONO_EXPORT std::string text() const;
};

}  // namespace unisono
