// Encoded moves between hosts: which algorithms of a collective the proof lets be encoded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/move_code.h"
#include "schedule/schedule.h"

namespace unisono::cost {

// An algorithm with encoded moves; without a schedule, why it has none.
struct EncodedAlgorithm {
  std::string name = {};   // of the algorithm, with its parameters
  std::string title = {};  // "two_shot+i8"
  std::shared_ptr<const Schedule> schedule = {};
  std::string why_not = {};
};

// `hosts`: one number for each rank.
EncodedAlgorithm encode_proved(const Schedule& plain, const std::string& name,
                               std::span<const int> hosts, MoveCode code);

struct EncodedCall {
  Collective collective = Collective::all_reduce;
  int root = 0;
  MoveCode code = MoveCode::i8;
};

// All that can serve, in the order of the catalogue; of all_reduce first the one that is made for
// it, two_shot (algorithms/two_shot_hosts.h). Algorithms of the catalogue that may have more
// messages than `most_messages` are not tried; where no other can be encoded, they are until one
// can, those with the fewest messages first.
std::vector<EncodedAlgorithm> encoded_algorithms(const EncodedCall& call,
                                                 std::span<const int> hosts, double most_messages);

// To encode a byte of f32, and as long to decode it. Measured on one core of an x86 server.
inline constexpr double kCodingUsPerByte = 1 / 12'000.0;

}  // namespace unisono::cost
