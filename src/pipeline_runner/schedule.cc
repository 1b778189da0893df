#include <algorithm>
#include <utility>

#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/text.h"
#include "pipeline/transfers.h"
#include "pipeline/verify.h"
#include "pipeline_runner/schedule_state.h"
#include "unisono/error.hpp"
#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel {
namespace {

std::shared_ptr<const detail::ScheduleState> proved(pipeline::Pipeline pipeline) {
  if (!has_transfers(pipeline)) {
    add_transfers(pipeline);
  }
  const pipeline::Verdict verdict = verify(pipeline);
  // If only the capacity is too small, the runner's lanes provide as much as needed.
  if (verdict.least_capacity < 0) {
    throw Error(ErrorCode::usage, "the pipeline schedule " + pipeline.name +
                                      " is invalid: " + sentence(verdict.findings.front()) +
                                      "\n`unisono pipeline verify` lists all findings");
  }
  pipeline.capacity = std::max(pipeline.capacity, verdict.least_capacity);
  const int capacity = std::max(1, pipeline.capacity);
  return std::make_shared<detail::ScheduleState>(
      detail::ScheduleState{.pipeline = std::move(pipeline), .capacity = capacity});
}

void expect_within(const std::string& what, int index, int count) {
  if (index < 0 || index >= count) {
    throw Error(ErrorCode::usage, "the pipeline schedule has no " + what + " " +
                                      std::to_string(index) + "\nit has 0 to " +
                                      std::to_string(count - 1));
  }
}

}  // namespace

PipelineSchedule::PipelineSchedule(std::shared_ptr<const detail::ScheduleState> state)
    : state_(std::move(state)) {}

PipelineSchedule PipelineSchedule::by_name(std::string_view name, const PipelineShape& shape) {
  const pipeline::Entry* entry = pipeline::find_entry(name);
  if (entry == nullptr) {
    std::string names;
    for (const pipeline::Entry* known : pipeline::catalog()) {
      names += (names.empty() ? "" : ", ") + std::string(known->name);
    }
    throw Error(ErrorCode::usage,
                "there is no pipeline schedule '" + std::string(name) + "'\nthere are " + names);
  }
  const int own = entry->chunks == 0 ? 2 : entry->chunks;
  const pipeline::PipelineSize wanted{.ranks = shape.ranks,
                                      .chunks = shape.chunks == 0 ? own : shape.chunks,
                                      .microbatches = shape.microbatches};
  if (const std::string problem = refusal(*entry, wanted); !problem.empty()) {
    throw Error(ErrorCode::usage, problem + "\nchoose another shape or schedule");
  }
  return PipelineSchedule(proved(build(*entry, wanted)));
}

PipelineSchedule PipelineSchedule::parse(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  Parsed<pipeline::Pipeline> parsed =
      is_json ? pipeline::parse_pipeline_json(text) : pipeline::parse_csv(text);
  if (!parsed) {
    throw Error(ErrorCode::usage, "this is not a pipeline schedule: " + parsed.position + ": " +
                                      parsed.message +
                                      "\ndocs/formats/pipeline.md describes both formats");
  }
  return PipelineSchedule(proved(std::move(*parsed.value)));
}

int PipelineSchedule::ranks() const {
  return state_->pipeline.ranks;
}
int PipelineSchedule::stages() const {
  return state_->pipeline.stages();
}
int PipelineSchedule::microbatches() const {
  return state_->pipeline.microbatches;
}
int PipelineSchedule::capacity() const {
  return state_->capacity;
}

int PipelineSchedule::rank_of(int stage) const {
  expect_within("stage", stage, stages());
  return state_->pipeline.stage_rank[static_cast<std::size_t>(stage)];
}

std::vector<int> PipelineSchedule::stages_of(int rank) const {
  expect_within("rank", rank, ranks());
  std::vector<int> stages;
  for (int stage = 0; stage < this->stages(); ++stage) {
    if (rank_of(stage) == rank) {
      stages.push_back(stage);
    }
  }
  return stages;
}

std::vector<std::vector<int>> PipelineSchedule::chains() const {
  std::vector<std::vector<int>> chains;
  for (const pipeline::Chain& chain : state_->pipeline.chains) {
    chains.push_back(chain.stages);
  }
  return chains;
}

std::vector<std::string> PipelineSchedule::actions_of(int rank) const {
  expect_within("rank", rank, ranks());
  std::vector<std::string> texts;
  for (const pipeline::Action& action : state_->pipeline.actions[static_cast<std::size_t>(rank)]) {
    texts.push_back(to_string(action));
  }
  return texts;
}

std::string PipelineSchedule::text() const {
  return to_json(state_->pipeline);
}

}  // namespace unisono::parallel
