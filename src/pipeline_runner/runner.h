// Runs the actions of one rank, step by step.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline_runner/buffers.h"
#include "pipeline_runner/lanes.h"
#include "pipeline_runner/schedule_state.h"
#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel::detail {

class PipelineRunner {
 public:
  PipelineRunner(Communicator& comm, std::shared_ptr<const ScheduleState> schedule,
                 const std::vector<PipelineStage>& stages, PipelineCallbacks callbacks,
                 const PipelineOptions& options);

  void run_step();
  std::vector<ActionTime> times() const;
  std::string times_json();
  std::size_t most_bytes_held() const { return pool_.most(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Span {
    double start_us = -1;
    double end_us = -1;
  };
  // The buffers of a stage's microbatch.
  struct Slot {
    StageBuffer input = {};
    StageBuffer output = {};
    StageBuffer output_gradient = {};
    StageBuffer input_gradient = {};
  };

  enum class State { ready, in_step, failed };

  void expect_ready() const;
  void begin_together();
  std::string problem(const std::vector<PipelineStage>& stages) const;
  std::string stages_problem(const std::vector<PipelineStage>& stages) const;
  std::size_t bytes_of(const pipeline::Action& action) const;
  std::size_t output_bytes(int stage) const;
  std::string failure_of() const;
  void do_actions();
  void do_action(std::size_t index);
  void compute(std::size_t first, std::size_t end);
  PipelinePass prepare(std::size_t index);
  void call(std::size_t index, const PipelinePass& pass);
  void finish(const pipeline::Action& action);
  void do_on_stage(const pipeline::Action& action) const;
  StageBuffer from_next_or_before(int other, const pipeline::Action& receive, std::size_t index);
  Slot& slot(int stage, int microbatch);
  const std::function<void(const PipelinePass&)>& callback_of(pipeline::ActionKind kind) const;
  double now_us() const;
  const std::vector<pipeline::Action>& own() const {
    return plan().actions[static_cast<std::size_t>(comm_.rank())];
  }
  const pipeline::Pipeline& plan() const { return schedule_->pipeline; }

  Communicator comm_;  // its own group with the same ranks
  std::shared_ptr<const ScheduleState> schedule_;
  PipelineCallbacks callbacks_;
  PipelineOptions options_;
  pipeline::Neighbours around_;
  std::vector<std::optional<TensorSpec>> outputs_;  // by stage
  BufferPool pool_;
  std::optional<Lanes> lanes_;
  std::vector<int> place_;  // by stage: index among this rank's stages; -1: on another rank
  std::vector<Slot> slots_;
  std::vector<Span> spans_;  // by action of this rank, with options_.record
  Clock::time_point begin_;
  std::size_t current_ = 0;  // index of the running action
  State state_ = State::ready;
};

}  // namespace unisono::parallel::detail
