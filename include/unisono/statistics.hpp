// Statistics: the number and bytes of a communicator's calls on this rank, the time that the calls
// spent moving data, and the time that they waited for each rank. Statistics are always recorded;
// this costs a few nanoseconds per call.
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
    std::uint64_t calls = 0;  // started, async ones included
    // The sum over the calls. A call counts the larger of its input and its output; a receive
    // counts the length of the message.
    std::uint64_t bytes = 0;
    // Time in blocking calls minus waiting. One in 64 calls below 32 KiB is timed and stands for
    // the other 63.
    double moving_s = 0;
    // Time in blocking calls and in Request::wait() during which the call made no progress for
    // about a microsecond or more, because a peer had not yet entered the call, sent its data, or
    // read this rank's data. The waiting of the progress thread does not count, because it delays
    // nobody. Waits for asynchronous sends and receives do not count.
    double waiting_s = 0;
    // The waiting time by the rank of the group that caused it. If several ranks are missing at
    // once, the time counts for the first of them until it arrives. If a rank on this host has not
    // entered the call, the time counts for that rank even where this rank needs its data only
    // indirectly, as in a ring. If the missing rank is on another host, the time counts for the
    // ranks in between. The sum over the ranks is waiting_s minus the waiting of receives from any
    // rank.
    std::vector<double> waiting_for_s;
    std::array<std::uint64_t, kSkewBuckets> skew = {};
  };

  std::vector<Row> rows;  // kinds that were called: collectives in enum order, then send, recv

  // Local. Returns a readable table.
  UNISONO_EXPORT std::string text() const;
};

}  // namespace unisono
