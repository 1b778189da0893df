// The messages between GPUs in an MSCCL program, and the places where a put may store them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "msccl/program.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// A step of a program together with what it waits for: the nops before it.
struct WaitingStep {
  int step = 0;
  std::vector<std::pair<int, int>> waits = {};  // block and step, of the same GPU
};
std::vector<WaitingStep> actions_of(const msccl::ThreadBlock& block);

enum class Landing : std::uint8_t {
  free,     // where it is to be, as soon as the receiver has begun
  granted,  // there as well, when the receiver says so
  scratch   // in scratch of its own; the receiver takes it from there
};

struct PutMessage {
  Landing landing = Landing::free;
  PlanPlace place = {};  // at the receiver
};

// In their order, of each lane from one GPU to another.
using Messages = std::map<std::pair<int, int>, std::vector<PutMessage>>;

// Adds what scratch the messages take to `scratch`, of each GPU.
Messages find_messages(const msccl::MscclProgram& program, std::vector<int>& scratch);

// Returns the messages that a thread block of a GPU sends or receives; none if they stay within the
// GPU.
const std::vector<PutMessage>& lane_of(const Messages& messages, int gpu,
                                       const msccl::ThreadBlock& block);

}  // namespace unisono::mscclpp
