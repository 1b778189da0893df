// The moves between ranks as messages with their positions in lanes. All ranks compute the same
// messages, because both ends of a lane must agree on the order.
#pragma once

#include <vector>

#include "engine/program.h"

namespace unisono::engine {

struct Message {
  int step = 0;
  int from = 0;
  int to = -1;  // -1: multicast to all others
  int chunk = 0;
  int chunks = 1;
  OperandPlace source = OperandPlace::input;
  bool single = false;  // see Operand
  MoveCode code = MoveCode::none;
  int ordinal = 0;  // in its lane
};

struct Delivery {
  int step = 0;  // of the move: a multicast may be sent earlier
  int to = 0;
  int message = 0;
  Buffer target = Buffer::output;
  bool single_target = false;  // before it comes
  Combine combine = Combine::replace;
};

struct Local {
  int step = 0;
  int rank = 0;
  int chunk = 0;
  int chunks = 1;
  OperandPlace source = OperandPlace::input;
  bool single = false;
  Buffer target = Buffer::output;
  bool single_target = false;
  Combine combine = Combine::replace;
  MoveCode code = MoveCode::none;
};

struct Messages {
  std::vector<Message> messages;   // by step of sending
  std::vector<Delivery> arrivals;  // by step
  std::vector<Local> locals;       // by step
};

Messages plan_messages(const Schedule& schedule, const LowerOptions& options);

}  // namespace unisono::engine
