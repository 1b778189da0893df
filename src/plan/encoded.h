// Calls whose moves between hosts may be encoded (Call::accuracy): which code serves, and the
// schedule with its proof.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "schedule/schedule.h"
#include "unisono/call.hpp"

namespace unisono::comm {

// Why a call is not done as it is asked for, and what to do.
struct Refused {
  std::string what;  // empty: nothing is refused
  std::string hint;
};

// Whether a call can keep to an accuracy that is not 0: its own, or the communicator's.
Refused refusal_of_accuracy(const Call& call, double accuracy);

// The shortest that is accurate enough. REQUIRES: nothing is refused.
MoveCode code_for(double accuracy);

// What runs such a call: its schedule and names.
struct EncodedSchedule {
  std::shared_ptr<const Schedule> schedule;
  std::string name;  // "two_shot+i8"
  std::string key;   // with the hosts
  MoveCode code = MoveCode::none;
  Refused refusal;  // of the proof: something would be rounded twice, or ranks end with other bits
};

// `plain`: the schedule to encode, of the algorithm `name`.
EncodedSchedule encode_proved(const Schedule& plain, const std::string& name,
                              std::span<const int> hosts, MoveCode code);

}  // namespace unisono::comm
