// A pipeline schedule as data: which rank computes which stage of which microbatch, in which order,
// and what it sends and receives in between.
//
// A model is cut into stages, and each stage is on a rank. A chain is a sequence of stages. Each
// microbatch of the chain passes all its stages, first forward and then backward. DualPipe has two
// chains, which run in opposite directions over the same ranks; each chain holds a copy of the
// model. Every other schedule has one chain. Actions are spelt as in torch.distributed.pipelining:
// "2F0", "3SEND_F1", "(1F4;2B0)OVERLAP_F_B".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::pipeline {

enum class ActionKind : std::uint8_t {
  forward,           // F
  backward,          // B: input and weight gradients together
  backward_input,    // I
  backward_weight,   // W
  send_forward,      // SEND_F: the output of F of this stage, to the next stage
  receive_forward,   // RECV_F: the input of this stage, from the stage before
  send_backward,     // SEND_B: the input gradient of this stage, to the stage before
  receive_backward,  // RECV_B: the output gradient of this stage, from the next stage
  reduce_grad,       // REDUCE_GRAD: over the data-parallel axis
  unshard,           // UNSHARD: gathers the parameters of the stage
  reshard,           // RESHARD: frees them again
  overlap,           // OVERLAP_F_B: computes the following `parts` actions together
};

struct Action {
  ActionKind kind = ActionKind::forward;
  int stage = -1;       // -1: an overlap
  int microbatch = -1;  // -1: an action on a whole stage
  int parts = 0;        // overlap: number of actions inside, which follow

  bool operator==(const Action&) const = default;
};

// Microbatches first, ..., first + count - 1 pass these stages in order.
struct Chain {
  std::vector<int> stages = {};
  int first = 0;
  int count = 0;

  bool operator==(const Chain&) const = default;
};

// Times in one unit, by stage. B takes input + weight.
struct Costs {
  std::vector<double> forward = {};
  std::vector<double> input = {};
  std::vector<double> weight = {};
  std::vector<double> transfer = {};  // from this stage to the next one of its chain

  bool operator==(const Costs&) const = default;
};

// The memory of one microbatch of a stage: `activation` from its F on, and `kept` between I and W.
struct StageMemory {
  std::vector<double> activation_bytes = {};
  std::vector<double> kept_bytes = {};

  bool operator==(const StageMemory&) const = default;
};

struct Pipeline {
  std::string name = {};
  int ranks = 1;
  int microbatches = 1;
  std::vector<int> stage_rank = {};  // by stage
  std::vector<Chain> chains = {};
  Costs costs = {};
  StageMemory memory = {};
  // Messages between two ranks keep their order: in one FIFO (1), or in separate FIFOs for forward
  // and backward (2).
  int lanes = 2;
  // The number of messages that a lane holds in each direction before a receive takes them; 0: a
  // send ends when its receive has begun.
  int capacity = 1;
  std::vector<std::vector<Action>> actions = {};  // by rank, in order

  int stages() const { return static_cast<int>(stage_rank.size()); }
  bool operator==(const Pipeline&) const = default;
};

inline constexpr int kMostRanks = 4096;
inline constexpr int kMostStages = 16384;
inline constexpr int kMostMicrobatches = 65536;
inline constexpr std::size_t kMostActions = 4U << 20U;  // also the limit of stages times
                                                        // microbatches

// The neighbours of each stage; -1 means none. `chain` is the index of its chain.
struct Neighbours {
  std::vector<int> before;
  std::vector<int> next;
  std::vector<int> chain;
};
Neighbours neighbours(const Pipeline& pipeline);

bool is_compute(ActionKind kind);  // true for F, B, I and W
bool is_send(ActionKind kind);
bool is_receive(ActionKind kind);
bool is_forward_lane(ActionKind kind);  // true for SEND_F and RECV_F
bool has_microbatch(ActionKind kind);
std::string_view to_string(ActionKind kind);  // "SEND_F"
std::string to_string(const Action& action);  // "3SEND_F1"

// Returns the index of the action after the one at `index`; skips its parts if it is an overlap.
std::size_t after(const std::vector<Action>& actions, std::size_t index);

// Sets missing costs and memory sizes to 1 for each stage, and transfers to 0.
void set_unit_costs(Pipeline& pipeline);

// Returns why the data itself is invalid (sizes, ranks out of range, ...), or nothing. verify()
// checks the order of the actions.
std::optional<std::string> check(const Pipeline& pipeline);

}  // namespace unisono::pipeline
