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
  double late_us = 0;  // enters its first item that much later
  double factor = 1;   // its overhead, reductions and compute steps take that much longer
};

enum class Contention : std::uint8_t {
  automatic,  // shared links wherever there may be any
  on,         // play all events through
  off         // every message has its links for itself
};

// The progress of a simulation, for another thread to read.
struct SimulationProgress {
  std::atomic<double> played = 0;  // messages; those that are not played one by one count as well
  std::atomic<double> all = 0;     // 0: not known yet
};

struct SimulationOptions {
  int ports = 1;                  // of a rank, each way, for each stream
  double gamma_us_per_byte = 0;   // to reduce; with a flat network, that of its parameters counts
  double coding_us_per_byte = 0;  // to encode a byte of an encoded move, and to decode it
  double launch_us = 0;           // to start an operation
  double segment_bytes = 0;       // cut chunks into segments of at most this size; 0: whole
  Contention contention = Contention::automatic;
  RouteChoice routes = RouteChoice::fixed;  // on a topology
  std::vector<RankFault> rank_faults = {};
  std::vector<LinkFault> link_faults = {};
  double jitter = 0;  // overhead and compute steps take up to this part longer, at random
  std::uint64_t seed = 1;
  bool extrapolate = true;  // of repeated steps, simulate only until they are steady
  bool rank_times = true;   // RankTimes
  std::size_t records = 0;  // keep up to that many messages, and as many compute steps
  // A single operation with more messages than these, in its short form, has its phases, or parts
  // of them, made, played and dropped. The result is the same.
  double kept_messages = 4e6;
  double most_messages = 0;                // refuse to play more than these one by one; 0: no limit
  SimulationProgress* progress = nullptr;  // to keep it up to date; nullptr: nobody looks
};

struct RankTimes {
  // Sending or receiving; where more than 4096 messages a step repeat, how long its busier port
  // was.
  double moving_us = 0;
  double computing_us = 0;  // compute steps
  double starting_us = 0;   // operations start, and it does neither meanwhile
  double waiting_us = 0;    // none of these
};

struct LinkUse {
  double bytes = 0;
  // With at least one message flowing. For a link where messages meet that it has room for all of,
  // the sum over them, at most the whole time.
  double busy_us = 0;
  // The time of its bytes at its full bandwidth: close to the whole time at a bottleneck, while a
  // link that only waits for a narrower one on the path is busy as long.
  double full_us = 0;
};

struct MessageRecord {
  int item = 0;  // of the workload
  int phase = 0;
  std::int64_t step = 0;  // of the phase
  int from = 0;
  int to = 0;
  double bytes = 0;
  double start_us = 0;
  double end_us = 0;  // its data is ready; reduced, if it is
  int cause = -1;     // the record whose end let it start; -1: nothing, or not kept
};

// A compute step of a rank.
struct ComputeRecord {
  int item = 0;
  int rank = 0;
  double start_us = 0;
  double end_us = 0;
};

// The chain of messages and compute steps that led to the end. The parts add up to the whole.
struct CriticalPath {
  std::int64_t messages = 0;
  double latency_us = 0;  // overhead and links, and what operations take to start
  double transfer_us = 0;
  double reduce_us = 0;
  double compute_us = 0;  // and lateness
};

struct SimulationResult {
  double total_us = 0;
  CriticalPath critical;
  std::vector<RankTimes> ranks = {};
  std::vector<LinkUse> links = {};       // of the topology; empty for a flat network
  std::vector<double> item_end_us = {};  // of each item of the workload, on its last rank
  std::vector<MessageRecord> records = {};
  std::vector<ComputeRecord> computes = {};
  std::vector<int> critical_records = {};  // of the critical path, first to last, if all are kept
  double messages = 0;                     // of the workload
  double simulated = 0;                    // of these, not extrapolated
  bool shared_links = false;               // which engine
  std::optional<Protocol> protocol = {};  // of the only operation; none: of several, or it has none
};

}  // namespace unisono::network_model
