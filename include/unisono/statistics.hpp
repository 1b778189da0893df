// What the calls of a communicator cost this rank: how many there were, how much they carried, how
// long they moved data, and how long they waited and for whom. Always kept: a few nanoseconds a
// call.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "unisono/export.hpp"

namespace unisono {

struct Statistics {
  // skew[0]: calls that waited less than a microsecond in all; skew[k]: at least 2^(k-1) and less
  // than 2^k microseconds; the last one: all that is longer.
  static constexpr int kSkewBuckets = 24;

  // All calls of one kind.
  struct Row {
    std::string what;         // "all_reduce", ..., "send", "recv"
    std::uint64_t calls = 0;  // begun; async ones too
    std::uint64_t bytes = 0;  // of each call the larger of what goes in and what comes out
    // Inside blocking calls, without the waiting. Calls of less than 32 KiB are timed one in 64,
    // and count for the others.
    double moving_s = 0;
    // Nothing could be done for about a microsecond or more, because a peer had not come, not sent
    // or not read: in blocking calls and in Request::wait(). What a progress thread waits for is
    // not counted, because it holds nobody up.
    double waiting_s = 0;
    // [rank of the group]: waiting for it. A rank of this host that has not called yet is waited
    // for also by those who need its data through others, as in a ring; of another host, those
    // others are. Where several are missing at once, the first of them has the time until it comes.
    // The sum is waiting_s, less what receives from any rank waited.
    std::vector<double> waiting_for_s;
    std::array<std::uint64_t, kSkewBuckets> skew = {};
  };

  std::vector<Row> rows;  // kinds that were called, in the order of Collective, then send and recv

  // A table for people.
  UNISONO_EXPORT std::string text() const;
};

}  // namespace unisono
