#include "pipeline_runner/runner.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "pipeline_runner/agree.h"
#include "pipeline_runner/rethrow.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace detail {

using pipeline::Action;
using pipeline::ActionKind;

PipelineRunner::PipelineRunner(Communicator& comm, std::shared_ptr<const ScheduleState> schedule,
                               const std::vector<PipelineStage>& stages,
                               PipelineCallbacks callbacks, const PipelineOptions& options)
    : comm_(comm.split(0, comm.rank())),
      schedule_(std::move(schedule)),
      callbacks_(std::move(callbacks)),
      options_(options),
      around_(neighbours(plan())) {
  outputs_ = agree(comm_, plan(), stages, problem(stages));
  int own_stages = 0;
  for (const int rank : plan().stage_rank) {
    place_.push_back(rank == comm.rank() ? own_stages++ : -1);
  }
  slots_.resize(static_cast<std::size_t>(own_stages) *
                static_cast<std::size_t>(plan().microbatches));
  if (options_.record) {
    spans_.resize(own().size());
  }
  lanes_.emplace(comm_, plan(), pool_,
                 Lanes::Setting{.capacity = schedule_->capacity,
                                .timeout_ms = options.timeout_ms,
                                .bytes = [this](const Action& action) { return bytes_of(action); },
                                .ended =
                                    [this](std::size_t action) {
                                      if (options_.record) {
                                        spans_[action].end_us = now_us();
                                      }
                                    }});
}

std::string PipelineRunner::stages_problem(const std::vector<PipelineStage>& stages) const {
  std::vector<bool> seen(plan().stage_rank.size(), false);
  for (const PipelineStage& stage : stages) {
    const std::string name = "stage " + std::to_string(stage.stage);
    if (stage.stage < 0 || stage.stage >= plan().stages()) {
      return name + " is not a stage of the schedule\nit has 0 to " +
             std::to_string(plan().stages() - 1);
    }
    const auto at = static_cast<std::size_t>(stage.stage);
    if (plan().stage_rank[at] != comm_.rank()) {
      return name + " is on rank " + std::to_string(plan().stage_rank[at]) +
             "\ncall PipelineSchedule::stages_of() for the stages of a rank";
    }
    if (seen[at]) {
      return name + " is given twice\ngive each stage once";
    }
    seen[at] = true;
  }
  for (std::size_t stage = 0; stage < seen.size(); ++stage) {
    if (plan().stage_rank[stage] == comm_.rank() && !seen[stage]) {
      return "stage " + std::to_string(stage) +
             " is not given\ncall PipelineSchedule::stages_of() for the stages of a rank";
    }
  }
  return "";
}

std::string PipelineRunner::problem(const std::vector<PipelineStage>& stages) const {
  if (plan().ranks != comm_.size()) {
    return "the schedule has " + std::to_string(plan().ranks) + " ranks, the communicator " +
           std::to_string(comm_.size()) + "\nmake the schedule for the ranks of its axis";
  }
  for (const Action& action : own()) {
    if (is_compute(action.kind) && callback_of(action.kind) == nullptr) {
      return "the schedule has " + to_string(action) + ", but there is no callback for " +
             std::string(to_string(action.kind)) + "\nset all callbacks that the schedule needs";
    }
  }
  return stages_problem(stages);
}

const std::function<void(const PipelinePass&)>& PipelineRunner::callback_of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::forward:
      return callbacks_.forward;
    case ActionKind::backward:
      return callbacks_.backward;
    case ActionKind::backward_input:
      return callbacks_.backward_input;
    default:
      return callbacks_.backward_weight;
  }
}

// Returns the size of a stage's output and of its gradient.
std::size_t PipelineRunner::output_bytes(int stage) const {
  const auto& spec = outputs_[static_cast<std::size_t>(stage)];
  return spec ? spec->bytes() : 0;
}

std::size_t PipelineRunner::bytes_of(const Action& action) const {
  const bool is_own =
      action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;
  return output_bytes(is_own ? action.stage
                             : around_.before[static_cast<std::size_t>(action.stage)]);
}

PipelineRunner::Slot& PipelineRunner::slot(int stage, int microbatch) {
  return slots_[static_cast<std::size_t>(place_[static_cast<std::size_t>(stage)]) *
                    static_cast<std::size_t>(plan().microbatches) +
                static_cast<std::size_t>(microbatch)];
}

double PipelineRunner::now_us() const {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
}

void PipelineRunner::expect_ready() const {
  if (state_ == State::in_step) {
    throw Error(ErrorCode::usage,
                "pipeline: a step is in progress\na callback cannot start another step, nor read "
                "the times of this one");
  }
  if (state_ == State::failed) {
    throw Error(ErrorCode::usage,
                "pipeline: an earlier step has failed\nmake a new pipeline on a working "
                "communicator (see Communicator::shrink)");
  }
}

// Starts the times of all ranks at the same moment.
void PipelineRunner::begin_together() {
  spans_.assign(spans_.size(), {});
  saying_what_it_waits_for(
      comm_.rank(), [] { return std::string("all ranks to begin the step, as it is recorded"); },
      [this] { comm_.barrier(options_.timeout_ms); });
}

void PipelineRunner::run_step() {
  expect_ready();
  state_ = State::in_step;
  current_ = 0;
  // An exception must not leave the other ranks waiting. A world that has already ended keeps its
  // reason.
  try {
    if (options_.record) {
      begin_together();
    }
    begin_ = Clock::now();
    do_actions();
  } catch (const std::exception& error) {
    state_ = State::failed;
    comm_.abort(failure_of() + error.what());
    throw;
  } catch (...) {
    state_ = State::failed;
    comm_.abort(failure_of() + "the callback threw something other than a std::exception");
    throw;
  }
  state_ = State::ready;
}

std::string PipelineRunner::failure_of() const {
  return "rank " + std::to_string(comm_.rank()) + " of the pipeline failed in " +
         (current_ < own().size() ? to_string(own()[current_]) : "the end of its step") + ": ";
}

void PipelineRunner::do_actions() {
  lanes_->begin_step();
  for (std::size_t i = 0; i < own().size(); i = after(own(), i)) {
    current_ = i;
    do_action(i);
  }
  current_ = own().size();
  lanes_->finish_step();
}

void PipelineRunner::do_action(std::size_t index) {
  const Action& action = own()[index];
  if (options_.record) {
    spans_[index].start_us = now_us();
  }
  switch (action.kind) {
    case ActionKind::send_forward:
      return lanes_->send(index, std::move(slot(action.stage, action.microbatch).output));
    case ActionKind::send_backward:
      return lanes_->send(index, std::move(slot(action.stage, action.microbatch).input_gradient));
    case ActionKind::receive_forward:
    case ActionKind::receive_backward:
      return lanes_->reach(index);
    case ActionKind::reduce_grad:
    case ActionKind::unshard:
    case ActionKind::reshard:
      do_on_stage(action);
      break;
    default:
      compute(index + (action.parts > 0 ? 1 : 0), after(own(), index));
  }
  if (options_.record) {
    spans_[index].end_us = now_us();
  }
}

void PipelineRunner::do_on_stage(const Action& action) const {
  const auto& callback = action.kind == ActionKind::reduce_grad ? callbacks_.reduce_grad
                         : action.kind == ActionKind::unshard   ? callbacks_.unshard
                                                                : callbacks_.reshard;
  if (callback != nullptr) {
    callback(action.stage);
  }
}

// Runs the computation at `first`, or all parts of an overlap.
void PipelineRunner::compute(std::size_t first, std::size_t end) {
  std::vector<PipelinePass> passes;
  for (std::size_t i = first; i < end; ++i) {
    passes.push_back(prepare(i));
  }
  if (callbacks_.overlap != nullptr && end - first > 1) {
    std::vector<std::function<void()>> parts;
    for (std::size_t i = first; i < end; ++i) {
      parts.emplace_back([this, i, &pass = passes[i - first]] { call(i, pass); });
    }
    callbacks_.overlap(parts);
  } else {
    for (std::size_t i = first; i < end; ++i) {
      current_ = i;
      call(i, passes[i - first]);
    }
  }
  for (std::size_t i = first; i < end; ++i) {
    finish(own()[i]);
  }
}

void PipelineRunner::call(std::size_t index, const PipelinePass& pass) {
  if (options_.record) {
    spans_[index].start_us = now_us();
  }
  callback_of(own()[index].kind)(pass);
  if (options_.record) {
    spans_[index].end_us = now_us();
  }
}

// Returns the message of `receive`, or the tensor that a neighbouring stage on this rank has
// produced.
StageBuffer PipelineRunner::from_next_or_before(int other, const Action& receive,
                                                std::size_t index) {
  if (plan().stage_rank[static_cast<std::size_t>(other)] != comm_.rank()) {
    return lanes_->take(receive, index);
  }
  Slot& theirs = slot(other, receive.microbatch);
  return std::move(receive.kind == ActionKind::receive_forward ? theirs.output
                                                               : theirs.input_gradient);
}

PipelinePass PipelineRunner::prepare(std::size_t index) {
  const Action& action = own()[index];
  const int before = around_.before[static_cast<std::size_t>(action.stage)];
  const int next = around_.next[static_cast<std::size_t>(action.stage)];
  Slot& mine = slot(action.stage, action.microbatch);
  const auto spec_of = [this](int stage) {
    return stage < 0 ? nullptr : &*outputs_[static_cast<std::size_t>(stage)];
  };
  PipelinePass pass{.stage = action.stage,
                    .microbatch = action.microbatch,
                    .input_spec = spec_of(before),
                    .output_spec = next < 0 ? nullptr : spec_of(action.stage)};
  if (action.kind == ActionKind::forward) {
    if (before >= 0) {
      mine.input = from_next_or_before(
          before, {ActionKind::receive_forward, action.stage, action.microbatch}, index);
    }
    if (next >= 0) {
      mine.output = pool_.take(output_bytes(action.stage));
      pass.output = mine.output.span();
    }
  } else if (action.kind != ActionKind::backward_weight) {
    if (next >= 0) {
      mine.output_gradient = from_next_or_before(
          next, {ActionKind::receive_backward, action.stage, action.microbatch}, index);
    }
    if (before >= 0) {
      mine.input_gradient = pool_.take(output_bytes(before));
      pass.input_gradient = mine.input_gradient.span();
    }
  }
  pass.input = mine.input.span();
  pass.output_gradient = mine.output_gradient.span();
  return pass;
}

void PipelineRunner::finish(const Action& action) {
  if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) {
    Slot& mine = slot(action.stage, action.microbatch);
    pool_.give_back(std::move(mine.input));
    pool_.give_back(std::move(mine.output_gradient));
  }
}

std::vector<ActionTime> PipelineRunner::times() const {
  if (!options_.record) {
    throw Error(ErrorCode::usage, "pipeline: no times were recorded\nset PipelineOptions::record");
  }
  std::vector<ActionTime> times;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    times.push_back({.action = to_string(own()[i]),
                     .start_us = spans_[i].start_us,
                     .end_us = spans_[i].end_us});
  }
  return times;
}

}  // namespace detail

Pipeline::Pipeline(Communicator& comm, const PipelineSchedule& schedule,
                   std::vector<PipelineStage> stages, PipelineCallbacks callbacks,
                   const PipelineOptions& options)
    : runner_(std::make_unique<detail::PipelineRunner>(comm, schedule.shared_state(), stages,
                                                       std::move(callbacks), options)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

void Pipeline::run_step() {
  runner_->run_step();
}
std::vector<ActionTime> Pipeline::times() const {
  return runner_->times();
}
std::string Pipeline::times_json() {
  return runner_->times_json();
}
std::size_t Pipeline::most_bytes_held() const {
  return runner_->most_bytes_held();
}

}  // namespace unisono::parallel
