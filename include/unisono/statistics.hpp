// Statistics: the number and bytes of a communicator's calls on this rank, the time that they spent
// moving data, and the time that they waited for each rank. Always recorded, at a few nanoseconds
// per call.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "unisono/export.hpp"

namespace unisono {

struct Statistics {
  // Histogram of waiting time per call. skew[0] counts calls that waited less than a microsecond;
  // skew[k] at least 2^(k-1) and less than 2^k microseconds; the last bucket all longer ones.
  static constexpr int kSkewBuckets = 24;

  // All calls of one kind.
  struct Row {
    std::string what;         // "all_reduce", ..., "send", "recv"
    std::uint64_t calls = 0;  // started, async ones included
    // For each call the larger of its input and output; for a receive the message that has come.
    std::uint64_t bytes = 0;
    // Time in blocking calls minus waiting. One in 64 calls below 32 KiB is timed and counts for
    // the others.
    double moving_s = 0;
    // Time in blocking calls and in Request::wait() during which the call made no progress for
    // about a microsecond or more, because a peer had not arrived, sent or read. Waiting of the
    // progress thread is not counted, because it delays nobody. Waits for asynchronous sends and
    // receives are not counted.
    double waiting_s = 0;
    // Waiting per rank of the group. If several ranks are missing at once, the first of them is
    // charged until it arrives. A rank on this host that has not entered the call is charged also
    // by ranks that need its data indirectly, as in a ring; for a rank on another host, the ranks
    // in between are charged. The sum is waiting_s minus the waiting of receives from any rank.
    std::vector<double> waiting_for_s;
    std::array<std::uint64_t, kSkewBuckets> skew = {};
  };

  std::vector<Row> rows;  // kinds that were called: collectives in enum order, then send, recv

  // Local. Returns a readable table.
  UNISONO_EXPORT std::string text() const;
};

}  // namespace unisono
