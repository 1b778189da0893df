// Pipeline parallelism: schedules, which are data, and a runner that executes a schedule with the
// computations of a model.
//
// A model is cut into stages, and each stage is on one rank. Each microbatch passes through the
// stages forward and then backward. The schedule gives the order of each rank's actions. Every
// schedule is verified across all ranks when it is made or parsed. The ranks therefore cannot
// deadlock, whatever the order in which messages arrive.
//
//   auto schedule = PipelineSchedule::by_name("zb-h1", {.ranks = 4, .microbatches = 8});
//   Pipeline pipeline(comm, schedule, {{.stage = comm.rank(), .output = hidden}}, callbacks);
//   pipeline.run_step();
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono::parallel {

namespace detail {
struct ScheduleState;
class PipelineRunner;
}  // namespace detail

// The size of a schedule for by_name().
struct PipelineShape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank; 0: the number that the schedule fixes, otherwise 2
};

// A pipeline schedule. Immutable and cheap to copy; all members are local.
// Threads: any.
class UNISONO_EXPORT PipelineSchedule {
 public:
  // Returns a schedule that `unisono pipeline list` names.
  // Errors: usage if no schedule has this name and shape.
  static PipelineSchedule by_name(std::string_view name, const PipelineShape& shape);
  // Parses the text of a file of at most 64 MiB. The format is unisono.pipeline/1, or the CSV of
  // torch.distributed.pipelining.
  // Errors: usage, with the position of the syntax error or the first finding of the verification.
  static PipelineSchedule parse(std::string_view text);

  int ranks() const;         // number of ranks
  int stages() const;        // number of stages on all ranks
  int microbatches() const;  // number of microbatches per step
  // Errors: usage if the stage or rank does not exist; actions_of() as well.
  int rank_of(int stage) const;
  std::vector<int> stages_of(int rank) const;
  // Returns the stages that a microbatch passes, in order. There is one such sequence, or two if
  // the ranks hold the model twice (DualPipe).
  std::vector<std::vector<int>> chains() const;
  // Returns how many unread messages a lane can hold. A lane carries the forward or the backward
  // messages from one rank to another. The verification has shown that this number is large enough.
  int capacity() const;
  // Returns the actions of a rank in order, such as "0F0" or "0SEND_F0".
  std::vector<std::string> actions_of(int rank) const;
  std::string text() const;  // in the format unisono.pipeline/1
  std::shared_ptr<const detail::ScheduleState> shared_state() const { return state_; }

 private:
  explicit PipelineSchedule(std::shared_ptr<const detail::ScheduleState> state);
  std::shared_ptr<const detail::ScheduleState> state_;
};

// The type and shape of the tensors between two stages.
struct TensorSpec {
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};  // at most 8 dimensions

  UNISONO_EXPORT std::size_t bytes() const;  // bytes of all elements
  UNISONO_EXPORT std::string text() const;   // such as "f32[4, 8]"
  bool operator==(const TensorSpec&) const = default;
};

// A stage on this rank. The gradient of a tensor has the type and shape of the tensor.
struct PipelineStage {
  int stage = 0;
  std::optional<TensorSpec> input = {};   // unset: the output of the previous stage
  std::optional<TensorSpec> output = {};  // required if there is a next stage
};

// One computation. Each span is aligned to 64 bytes, and the runner owns its memory. In the first
// stage the spans of the input are empty. In the last stage the spans of the output are empty.
struct PipelinePass {
  int stage = 0;
  int microbatch = 0;
  // The contents do not change between the call of F and the return of B, or of W in schedules that
  // split the backward pass.
  std::span<const std::byte> input = {};
  std::span<std::byte> output = {};                 // F writes it
  std::span<const std::byte> output_gradient = {};  // B, I and W read it
  std::span<std::byte> input_gradient = {};         // B and I write it
  // The types of the input and the output, and of their gradients; nullptr if the span is empty.
  const TensorSpec* input_spec = nullptr;
  const TensorSpec* output_spec = nullptr;
};

// Callbacks for the schedule's actions. The thread of run_step() calls them in the order of the
// schedule. Set the callback of every kind of computation that the schedule has on this rank. If a
// callback throws, the world ends on all ranks, as with Communicator::abort(), and run_step()
// rethrows the exception.
struct PipelineCallbacks {
  std::function<void(const PipelinePass&)> forward = nullptr;
  std::function<void(const PipelinePass&)> backward = nullptr;         // computes both gradients
  std::function<void(const PipelinePass&)> backward_input = nullptr;   // I
  std::function<void(const PipelinePass&)> backward_weight = nullptr;  // W
  // These three act on a whole stage. An unset callback does nothing.
  std::function<void(int stage)> reduce_grad = nullptr;
  std::function<void(int stage)> unshard = nullptr;
  std::function<void(int stage)> reshard = nullptr;
  // Runs the computations of an overlap. The callback must call each of these computations once, in
  // any order or concurrently. Unset: the computations run one after the other.
  std::function<void(std::span<const std::function<void()>>)> overlap = nullptr;
};

// Options of a Pipeline. All ranks pass the same options.
struct PipelineOptions {
  // The longest wait for one message; -1: the communicator's timeout, 0: no limit. The error names
  // the action that is late and the rank of this action.
  int timeout_ms = -1;
  // Records when each action begins and ends. run_step() then starts with a barrier.
  bool record = false;
};

// The times of one action in the last step, in microseconds since the step began. A time below 0
// means that the action has not run. A send or receive begins when it is posted.
struct ActionTime {
  std::string action = {};
  double start_us = -1;
  double end_us = -1;
};

// Runs a schedule on the ranks of a communicator, which is usually an axis of a mesh. Sends and
// receives are asynchronous and progress while computations run. The messages from one rank to
// another form two queues, called lanes: one for forward messages and one for backward messages.
// Each lane has its own group. In some schedules both kinds of messages share one lane. On each
// lane, up to capacity() receives are posted in advance.
//
// Threads: one thread at a time.
class UNISONO_EXPORT Pipeline {
 public:
  // Collective. Checks that all ranks pass the same schedule and the same shapes.
  // Errors: mismatch on all ranks if schedules or shapes differ. If stages or callbacks do not fit
  // the schedule: usage on the rank that passed them, and mismatch on the other ranks.
  Pipeline(Communicator& comm, const PipelineSchedule& schedule, std::vector<PipelineStage> stages,
           PipelineCallbacks callbacks, const PipelineOptions& options = {});
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // Collective. Runs one step: all microbatches forward and backward. Returns when this rank has
  // completed its actions and the receivers have its messages.
  // Errors: timeout, peer_lost and aborted; the text names the action that this rank waited for and
  // the rank of this action, and the world is then unusable. Exceptions of callbacks. usage if a
  // callback calls run_step(), or after a failed step.
  void run_step();
  // Local. Returns the times of this rank's actions in the last step. Needs
  // PipelineOptions::record.
  std::vector<ActionTime> times() const;
  // Collective. Returns the times of the last step on all ranks, in the format
  // unisono.pipeline_times/1 (docs/formats/pipeline.md); `unisono view` draws it. The text includes
  // a simulated prediction, which uses the medians of the measured computations. Needs
  // PipelineOptions::record.
  // Errors: usage, those of a collective.
  std::string times_json();
  // Local. Returns the largest number of bytes that inputs, outputs and gradients have occupied on
  // this rank at one time.
  std::size_t most_bytes_held() const;

 private:
  std::unique_ptr<detail::PipelineRunner> runner_;
};

}  // namespace unisono::parallel
