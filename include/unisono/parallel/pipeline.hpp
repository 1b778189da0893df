// Pipeline parallelism: schedules, which are data, and a runner that executes a schedule with a
// model's computations.
//
// A model is cut into stages, and each stage is on a rank. Microbatches pass through the stages
// forward and then backward. The schedule gives the order of each rank's actions. Every schedule is
// verified across all ranks when it is made or parsed. The ranks therefore cannot deadlock,
// whatever the order in which messages arrive.
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

// The size of the schedule that by_name() returns.
struct PipelineShape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank, if the schedule leaves the choice; 0: its own, or 2
};

// A pipeline schedule. Immutable and cheap to copy; all members are local.
// Threads: any.
class UNISONO_EXPORT PipelineSchedule {
 public:
  // Returns one of the schedules of `unisono pipeline list`.
  // Errors: usage if no schedule has this name and shape.
  static PipelineSchedule by_name(std::string_view name, const PipelineShape& shape);
  // Parses the text of a file, at most 64 MiB: unisono.pipeline/1, or the CSV of
  // torch.distributed.pipelining.
  // Errors: usage, with the position of the mistake or the first finding of the verification.
  static PipelineSchedule parse(std::string_view text);

  int ranks() const;         // of the pipeline
  int stages() const;        // on all ranks
  int microbatches() const;  // per step
  // Errors: usage for a stage or rank that does not exist; also from actions_of().
  int rank_of(int stage) const;
  std::vector<int> stages_of(int rank) const;
  // The stages that a microbatch passes, in order: one sequence, or two if the ranks hold the model
  // twice (DualPipe).
  std::vector<std::vector<int>> chains() const;
  // The number of unread messages that a lane can hold. A lane carries the messages from one rank
  // to another in one direction of the pass. The number is large enough for the order that was
  // verified.
  int capacity() const;
  // The actions of a rank in order, such as "0F0" or "0SEND_F0".
  std::vector<std::string> actions_of(int rank) const;
  std::string text() const;  // unisono.pipeline/1
  std::shared_ptr<const detail::ScheduleState> shared_state() const { return state_; }

 private:
  explicit PipelineSchedule(std::shared_ptr<const detail::ScheduleState> state);
  std::shared_ptr<const detail::ScheduleState> state_;
};

// The type and shape of the tensors between two stages.
struct TensorSpec {
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};  // at most 8 dimensions

  UNISONO_EXPORT std::size_t bytes() const;  // of the elements
  UNISONO_EXPORT std::string text() const;   // "f32[4, 8]"
  bool operator==(const TensorSpec&) const = default;
};

// A stage on this rank. A gradient has the shape of its tensor.
struct PipelineStage {
  int stage = 0;
  std::optional<TensorSpec> input = {};   // unset: the output of the previous stage
  std::optional<TensorSpec> output = {};  // required if there is a next stage
};

// One computation. Each span is aligned to 64 bytes, and the runner owns its memory. The spans of
// the input are empty in the first stage, and the spans of the output are empty in the last stage.
struct PipelinePass {
  int stage = 0;
  int microbatch = 0;
  // Does not change from the call of F until B, or W, has returned.
  std::span<const std::byte> input = {};
  std::span<std::byte> output = {};                 // F writes it
  std::span<const std::byte> output_gradient = {};  // B, I and W read it
  std::span<std::byte> input_gradient = {};         // B and I write it
  // The types of the input and the output (and of their gradients); nullptr if there is none.
  const TensorSpec* input_spec = nullptr;
  const TensorSpec* output_spec = nullptr;
};

// Callbacks for the schedule's actions. The thread of run_step() calls them in the schedule's
// order. All computations that the schedule has for this rank must be set. An exception ends the
// world on all ranks, as Communicator::abort() does, and run_step() rethrows it.
struct PipelineCallbacks {
  std::function<void(const PipelinePass&)> forward = nullptr;
  std::function<void(const PipelinePass&)> backward = nullptr;         // both gradients in one
  std::function<void(const PipelinePass&)> backward_input = nullptr;   // I
  std::function<void(const PipelinePass&)> backward_weight = nullptr;  // W
  // Act on a whole stage; an unset callback does nothing.
  std::function<void(int stage)> reduce_grad = nullptr;
  std::function<void(int stage)> unshard = nullptr;
  std::function<void(int stage)> reshard = nullptr;
  // Runs the computations of an overlap. This callback must call each computation once, in any
  // order or concurrently. Unset: the computations run one after the other.
  std::function<void(std::span<const std::function<void()>>)> overlap = nullptr;
};

// Options of a Pipeline; the same on all ranks.
struct PipelineOptions {
  // Limit of the wait for one message; -1: the communicator's, 0: no limit. The error names the
  // action and the rank that has not performed it.
  int timeout_ms = -1;
  // Records when each action begins and ends. run_step() then starts with a barrier.
  bool record = false;
};

// The times of one action of the last step, in microseconds since the step began. A time below 0
// means that the action has not run. A send or receive begins when it is posted.
struct ActionTime {
  std::string action = {};
  double start_us = -1;
  double end_us = -1;
};

// Runs a schedule on the ranks of a communicator (usually an axis of a mesh). Sends and receives
// are asynchronous and progress while computations run. The messages from one rank to another form
// two queues, called lanes: one for forward messages and one for backward messages. Each lane has
// its own group. In some schedules both kinds of messages share one lane. On each lane, up to
// capacity() receives are posted in advance.
//
// Threads: one thread at a time.
class UNISONO_EXPORT Pipeline {
 public:
  // Collective. The ranks agree on the schedule and the shapes.
  // Errors, on all ranks: mismatch if schedules or shapes differ; usage on a rank whose stages or
  // callbacks do not fit, and aborted on the others.
  Pipeline(Communicator& comm, const PipelineSchedule& schedule, std::vector<PipelineStage> stages,
           PipelineCallbacks callbacks, const PipelineOptions& options = {});
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // Collective. Runs one step: all microbatches forward and backward. Returns when this rank has
  // done its actions and its messages have been received.
  // Errors: timeout, peer_lost and aborted, naming the action that this rank waited for and the
  // rank that has not performed it (the world is then unusable); exceptions of callbacks; usage if
  // a callback calls run_step(), or after a failed step.
  void run_step();
  // Local. Returns this rank's times of the last step. Needs `record`.
  std::vector<ActionTime> times() const;
  // Collective. Returns the last step of all ranks as unisono.pipeline_times/1
  // (docs/formats/pipeline.md), with the player's prediction from the medians of the computations;
  // `unisono view` draws it. Needs `record`.
  // Errors: usage, those of a collective.
  std::string times_json();
  // Local. Returns the most bytes that inputs, outputs and gradients have occupied on this rank.
  std::size_t most_bytes_held() const;

 private:
  std::unique_ptr<detail::PipelineRunner> runner_;
};

}  // namespace unisono::parallel
