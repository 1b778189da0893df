// Pipeline parallelism: a schedule that is data, and a runner that does it with the computations of
// a model.
//
// A model is cut into stages, each stage lies on a rank, and microbatches pass them forward and
// then backward. The schedule says in which order each rank does its part; it is proved across the
// ranks when it is read, so that no order of its messages can make ranks wait for each other.
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

struct PipelineShape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages on a rank, where the schedule leaves the choice; 0: what it has, or 2
};

// Immutable, and cheap to copy. Any thread.
class UNISONO_EXPORT PipelineSchedule {
 public:
  // One of `unisono pipeline list`. Errors: usage, if no schedule has that name and shape.
  static PipelineSchedule by_name(std::string_view name, const PipelineShape& shape);
  // The text of a file: unisono.pipeline/1, or the CSV of torch.distributed.pipelining; at most
  // 64 MiB. Errors: usage, with the place of the mistake, or with the first thing that verify
  // finds.
  static PipelineSchedule parse(std::string_view text);

  explicit PipelineSchedule(std::shared_ptr<const detail::ScheduleState> state);

  int ranks() const;
  int stages() const;
  int microbatches() const;
  // Errors of these and of actions_of(): usage, of a stage or rank that there is not.
  int rank_of(int stage) const;
  std::vector<int> stages_of(int rank) const;
  // The stages that a microbatch passes, in order: one sequence, or two where the ranks hold the
  // model twice (DualPipe).
  std::vector<std::vector<int>> chains() const;
  // How many messages of a lane may be there before they are waited for: at least the proved one.
  int capacity() const;
  // The actions of a rank in order, as "0F0", "0SEND_F0".
  std::vector<std::string> actions_of(int rank) const;
  std::string text() const;  // unisono.pipeline/1
  std::shared_ptr<const detail::ScheduleState> shared_state() const { return state_; }

 private:
  std::shared_ptr<const detail::ScheduleState> state_;
};

// What passes between two stages.
struct TensorSpec {
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};  // at most 8 dimensions

  UNISONO_EXPORT std::size_t bytes() const;
  UNISONO_EXPORT std::string text() const;  // "f32[4, 8]"
  bool operator==(const TensorSpec&) const = default;
};

// A stage on this rank. Its gradients have the shapes of what they are the gradients of.
struct PipelineStage {
  int stage = 0;
  std::optional<TensorSpec> input = {};   // unset: whatever the stage before gives
  std::optional<TensorSpec> output = {};  // must be set where there is a next stage
};

// One computation. Each span is aligned to 64 bytes and belongs to the runner; it is empty where
// nothing comes in (the input of the first stage) or goes out (the output of the last one).
struct PipelinePass {
  int stage = 0;
  int microbatch = 0;
  // The same bytes from F until B, or until W, has returned.
  std::span<const std::byte> input = {};
  std::span<std::byte> output = {};                 // F writes it
  std::span<const std::byte> output_gradient = {};  // B, I and W read it
  std::span<std::byte> input_gradient = {};         // B and I write it
  // What the input and its gradient are, and the output and its; nullptr where there is none.
  const TensorSpec* input_spec = nullptr;
  const TensorSpec* output_spec = nullptr;
};

// What is called for the actions of the schedule, in its order, by the thread of run_step(). All
// that the schedule has for this rank must be set. What a callback throws ends the world on all
// ranks, as Communicator::abort() does, and is thrown by run_step().
struct PipelineCallbacks {
  std::function<void(const PipelinePass&)> forward = nullptr;
  std::function<void(const PipelinePass&)> backward = nullptr;         // both gradients in one
  std::function<void(const PipelinePass&)> backward_input = nullptr;   // I
  std::function<void(const PipelinePass&)> backward_weight = nullptr;  // W
  // On the whole stage; one that is not set does nothing.
  std::function<void(int stage)> reduce_grad = nullptr;
  std::function<void(int stage)> unshard = nullptr;
  std::function<void(int stage)> reshard = nullptr;
  // The computations of an overlap: each must be called once, in any order or at the same time.
  // Unset: one after the other.
  std::function<void(std::span<const std::function<void()>>)> overlap = nullptr;
};

struct PipelineOptions {
  // The longest that one message may be waited for; -1: as long as the communicator waits, 0: for
  // ever. The error names the action and the rank that owes it.
  int timeout_ms = -1;
  // Notes when each action begins and ends: run_step() starts with a barrier then.
  bool record = false;
};

// When one action of the last step began and ended, in microseconds since the step began; a send or
// receive begins when it is posted. Below 0: not done.
struct ActionTime {
  std::string action = {};
  double start_us = -1;
  double end_us = -1;
};

// Does a schedule on the ranks of a communicator (mostly an axis of a mesh). Sends and receives are
// asynchronous, and move while computations run; forward and backward messages are in groups of
// their own, unless the schedule has one lane for both. As many messages of a lane are received
// ahead as the schedule's capacity says. One thread at a time.
//
// Errors of run_step(), besides what callbacks throw: timeout, peer_lost, aborted, with the action
// that was waited for and the rank that owes it. The world is unusable after any of them. And
// usage, if a callback calls it, or after a step that failed.
class UNISONO_EXPORT Pipeline {
 public:
  // All ranks call it: they agree on the schedule and the shapes once. Errors, on all ranks:
  // mismatch, if schedules or shapes differ; usage, on a rank whose stages or callbacks do not fit,
  // and then aborted on the others.
  Pipeline(Communicator& comm, const PipelineSchedule& schedule, std::vector<PipelineStage> stages,
           PipelineCallbacks callbacks, const PipelineOptions& options = {});
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // One step: all microbatches forward and backward. Returns when this rank has done its actions
  // and its messages are taken.
  void run_step();
  // With record: what this rank did in the last step.
  std::vector<ActionTime> times() const;
  // With record: the last step of all ranks as unisono.pipeline_times/1 (docs/formats/pipeline.md),
  // which `unisono view` draws,
  // with what the player predicts from the medians of its computations. All ranks call it; all get
  // the text.
  std::string times_json();
  // The most bytes that inputs, outputs and gradients have taken on this rank.
  std::size_t most_bytes_held() const;

 private:
  std::unique_ptr<detail::PipelineRunner> runner_;
};

}  // namespace unisono::parallel
