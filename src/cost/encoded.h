// Finds the algorithms of a collective for which the proof allows encoded moves between hosts.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/move_code.h"
#include "schedule/schedule.h"

namespace unisono::cost {

// An algorithm with encoded moves. If it has no schedule, `why_not` gives the reason.
struct EncodedAlgorithm {
  std::string name = {};   // of the algorithm, with its parameters
  std::string title = {};  // "two_shot+i8"
  std::shared_ptr<const Schedule> schedule = {};
  std::string why_not = {};
};

// `hosts`: the host number of each rank.
EncodedAlgorithm encode_proved(const Schedule& plain, const std::string& name,
                               std::span<const int> hosts, MoveCode code);

struct EncodedCall {
  Collective collective = Collective::all_reduce;
  int root = 0;
  MoveCode code = MoveCode::i8;
};

// Returns all usable algorithms, in catalogue order. For all_reduce, the first one is two_shot,
// which is made for encoding (algorithms/two_shot_hosts.h). Skips algorithms of the catalogue that
// may have more messages than `most_messages`. If no other algorithm can be encoded, tries the
// skipped algorithms, those with the fewest messages first, until one can be encoded.
std::vector<EncodedAlgorithm> encoded_algorithms(const EncodedCall& call,
                                                 std::span<const int> hosts, double most_messages);

// The time to encode one byte of f32. Decoding takes as long again. Measured on one core of an x86
// server.
inline constexpr double kCodingUsPerByte = 1 / 12'000.0;

}  // namespace unisono::cost
