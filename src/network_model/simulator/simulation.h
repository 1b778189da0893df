// The options and the results of a simulation.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "network_model/simulator/paths.h"

namespace unisono::network_model {

struct RankFault {
  int rank = 0;
  double late_us = 0;  // delay before its first item
  double factor = 1;   // multiplies its overhead, reductions and compute steps
};

enum class Contention : std::uint8_t {
  automatic,  // share links wherever messages may meet
  on,         // always play events
  off         // every message has its links to itself
};

// The progress of a simulation, for another thread to read.
struct SimulationProgress {
  std::atomic<double> played = 0;  // messages, including those that are not played one by one
  std::atomic<double> all = 0;     // 0: unknown so far
};

struct SimulationOptions {
  int ports = 1;                  // per rank, direction and stream
  double gamma_us_per_byte = 0;   // to reduce; a flat network uses its own parameter
  double coding_us_per_byte = 0;  // to encode a byte of an encoded move, and again to decode it
  double launch_us = 0;           // to start an operation
  double segment_bytes = 0;       // cut chunks into segments of at most this size; 0: do not cut
  Contention contention = Contention::automatic;
  RouteChoice routes = RouteChoice::fixed;  // on a topology
  std::vector<RankFault> rank_faults = {};
  std::vector<LinkFault> link_faults = {};
  double jitter = 0;  // lengthens overhead and compute steps by up to this part, at random
  std::uint64_t seed = 1;
  bool extrapolate = true;  // simulate repeated steps only until they are steady
  bool rank_times = true;   // fill in RankTimes
  std::size_t records = 0;  // keep up to this many messages, and as many compute steps
  // A single operation in its short form with more messages than this is streamed: its phases, or
  // parts of them, are made, played and dropped. The result is the same.
  double kept_messages = 4e6;
  double most_messages = 0;                // refuse to play more messages than this one by one; 0:
                                           // no limit
  SimulationProgress* progress = nullptr;  // updated while simulating; may be nullptr
};

struct RankTimes {
  // Sending or receiving. If more than 4096 messages per step repeat, the busy time of the busier
  // port.
  double moving_us = 0;
  double computing_us = 0;  // compute steps
  double starting_us = 0;   // operations start, and the rank neither moves data nor computes
  double waiting_us = 0;    // none of these
};

struct LinkUse {
  double bytes = 0;
  // The time with at least one message flowing. For a link with room for all messages that meet on
  // it, the sum of their times, at most the total time.
  double busy_us = 0;
  // The time that its bytes need at full bandwidth. It is close to the total time at a bottleneck.
  // A link that only waits for a narrower one on the path has the same busy_us, but a smaller
  // full_us.
  double full_us = 0;
};

struct MessageRecord {
  int item = 0;  // index in the workload
  int phase = 0;
  std::int64_t step = 0;  // within the phase
  int from = 0;
  int to = 0;
  double bytes = 0;
  double start_us = 0;
  double end_us = 0;  // when its data is ready, after any reduction
  int cause = -1;     // record whose end let it start; -1: none, or not kept
};

// A compute step of a rank.
struct ComputeRecord {
  int item = 0;
  int rank = 0;
  double start_us = 0;
  double end_us = 0;
};

// The chain of messages and compute steps that led to the end. The parts add up to the total.
struct CriticalPath {
  std::int64_t messages = 0;
  double latency_us = 0;  // overhead, links, and starting operations
  double transfer_us = 0;
  double reduce_us = 0;
  double compute_us = 0;  // and late starts
};

struct SimulationResult {
  double total_us = 0;
  CriticalPath critical;
  std::vector<RankTimes> ranks = {};
  std::vector<LinkUse> links = {};       // by link of the topology; empty for a flat network
  std::vector<double> item_end_us = {};  // by item of the workload, on its last rank
  std::vector<MessageRecord> records = {};
  std::vector<ComputeRecord> computes = {};
  std::vector<int> critical_records = {};  // the critical path in order, if all its records are
                                           // kept
  double messages = 0;                     // in the workload
  double simulated = 0;                    // messages that were not extrapolated
  bool shared_links = false;               // whether the engine for shared links ran
  std::optional<Protocol> protocol = {};  // of the only operation; nothing if there are several, or
                                          // it has no protocol
};

}  // namespace unisono::network_model
