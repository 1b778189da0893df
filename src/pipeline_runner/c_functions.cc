// The C interface of pipeline schedules and their runner.
#include "unisono/pipeline.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/call.h"
#include "comm/handles.h"
#include "unisono/parallel/pipeline.hpp"

struct unisono_pipeline_schedule_handle {
  unisono::parallel::PipelineSchedule schedule;
};
struct unisono_pipeline_handle {
  unisono::parallel::Pipeline pipeline;
  std::string times = {};
};

namespace unisono::c_api {
namespace {

// A new last member could lie in the padding, where the size of the struct would not show its
// absence.
static_assert(offsetof(unisono_pipeline_options_t, context) + sizeof(void*) ==
              sizeof(unisono_pipeline_options_t));
static_assert(offsetof(unisono_pipeline_stage_t, dimensions) + sizeof(std::size_t) ==
              sizeof(unisono_pipeline_stage_t));
static_assert(offsetof(unisono_pipeline_pass_t, input_gradient_bytes) + sizeof(std::size_t) ==
              sizeof(unisono_pipeline_pass_t));

void expect_handle(const void* handle, const char* name) {
  if (handle == nullptr) {
    throw Error(ErrorCode::usage,
                "the " + std::string(name) + " is NULL\nit was never created, or was freed");
  }
}

void expect_success(unisono_result_t result, const char* callback) {
  if (result == UNISONO_SUCCESS) {
    return;
  }
  const bool is_known = result > UNISONO_SUCCESS && result <= UNISONO_EVICTED;
  throw Error(
      is_known ? static_cast<ErrorCode>(result - 1) : ErrorCode::usage,
      "the callback `" + std::string(callback) + "` returned " +
          (is_known ? unisono_result_name(result)
                    : std::to_string(static_cast<int>(result)) + ", which is not a result code") +
          "\ncheck the callback, which reported this error");
}

std::function<void(const parallel::PipelinePass&)> pass_callback(unisono_pass_callback_t callback,
                                                                 const char* name, void* context) {
  if (callback == nullptr) {
    return nullptr;
  }
  return [=](const parallel::PipelinePass& pass) {
    const unisono_pipeline_pass_t given = {sizeof(unisono_pipeline_pass_t),
                                           pass.stage,
                                           pass.microbatch,
                                           pass.input.data(),
                                           pass.input.size(),
                                           pass.output.data(),
                                           pass.output.size(),
                                           pass.output_gradient.data(),
                                           pass.output_gradient.size(),
                                           pass.input_gradient.data(),
                                           pass.input_gradient.size()};
    expect_success(callback(&given, context), name);
  };
}

std::function<void(int)> stage_callback(unisono_stage_callback_t callback, const char* name,
                                        void* context) {
  if (callback == nullptr) {
    return nullptr;
  }
  return [=](int stage) { expect_success(callback(stage, context), name); };
}

parallel::PipelineCallbacks callbacks_of(const unisono_pipeline_options_t& options) {
  void* const context = options.context;
  return {
      .forward = pass_callback(options.forward, "forward", context),
      .backward = pass_callback(options.backward, "backward", context),
      .backward_input = pass_callback(options.backward_input, "backward_input", context),
      .backward_weight = pass_callback(options.backward_weight, "backward_weight", context),
      .reduce_grad = stage_callback(options.reduce_gradient, "reduce_gradient", context),
      .unshard = stage_callback(options.unshard, "unshard", context),
      .reshard = stage_callback(options.reshard, "reshard", context),
  };
}

std::vector<parallel::PipelineStage> stages_of(const unisono_pipeline_stage_t* stages,
                                               std::size_t count) {
  std::vector<parallel::PipelineStage> made;
  for (const unisono_pipeline_stage_t& given :
       entries_of(stages, count, "stages", unisono_pipeline_stage_t UNISONO_PIPELINE_STAGE_INIT,
                  "UNISONO_PIPELINE_STAGE_INIT")) {
    parallel::PipelineStage& stage = made.emplace_back();
    stage.stage = given.stage;
    if (given.shape == nullptr && given.dimensions == 0) {
      continue;
    }
    if (given.shape == nullptr || given.dimensions > 8) {
      throw Error(ErrorCode::usage, "stage " + std::to_string(given.stage) + " has " +
                                        std::to_string(given.dimensions) +
                                        " dimensions\n`shape` is a list of at most 8");
    }
    const std::span shape(given.shape, given.dimensions);
    stage.output =
        parallel::TensorSpec{.dtype = dtype_of(given.dtype), .shape = {shape.begin(), shape.end()}};
  }
  return made;
}

unisono_pipeline_options_t known_options(const unisono_pipeline_options_t* given) {
  return members_of(given, "options", unisono_pipeline_options_t UNISONO_PIPELINE_OPTIONS_INIT,
                    "UNISONO_PIPELINE_OPTIONS_INIT");
}

}  // namespace
}  // namespace unisono::c_api

using namespace unisono::c_api;  // NOLINT(google-build-using-namespace): all below is outside
namespace up = unisono::parallel;

unisono_result_t unisono_pipeline_schedule_by_name(const char* name, int ranks, int microbatches,
                                                   int chunks,
                                                   unisono_pipeline_schedule_t* schedule) noexcept {
  return guard([&] {
    expect_place(schedule, "schedule");
    *schedule = nullptr;
    expect_place(name, "name");
    *schedule = new unisono_pipeline_schedule_handle{up::PipelineSchedule::by_name(
        name, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks})};
  });
}

unisono_result_t unisono_pipeline_schedule_parse(const char* text,
                                                 unisono_pipeline_schedule_t* schedule) noexcept {
  return guard([&] {
    expect_place(schedule, "schedule");
    *schedule = nullptr;
    expect_place(text, "text");
    *schedule = new unisono_pipeline_schedule_handle{up::PipelineSchedule::parse(text)};
  });
}

int unisono_pipeline_schedule_stages(unisono_pipeline_schedule_t schedule) noexcept {
  return schedule == nullptr ? 0 : schedule->schedule.stages();
}

int unisono_pipeline_schedule_rank_of(int stage, unisono_pipeline_schedule_t schedule) noexcept {
  const bool is_there = stage >= 0 && stage < unisono_pipeline_schedule_stages(schedule);
  return is_there ? schedule->schedule.rank_of(stage) : -1;
}

unisono_result_t unisono_pipeline_schedule_free(unisono_pipeline_schedule_t* schedule) noexcept {
  return guard([&] {
    expect_place(schedule, "schedule");
    delete std::exchange(*schedule, nullptr);
  });
}

unisono_result_t unisono_pipeline_create(unisono_pipeline_schedule_t schedule,
                                         const unisono_pipeline_stage_t* stages, std::size_t count,
                                         const unisono_pipeline_options_t* options,
                                         unisono_comm_t comm,
                                         unisono_pipeline_t* pipeline) noexcept {
  return guard([&] {
    expect_place(pipeline, "pipeline");
    *pipeline = nullptr;
    core_of(comm);
    expect_handle(schedule, "schedule");
    const unisono_pipeline_options_t known = known_options(options);
    unisono::Communicator ranks = unisono::detail::Handles::communicator(comm->core);
    *pipeline = new unisono_pipeline_handle{
        up::Pipeline(ranks, schedule->schedule, stages_of(stages, count), callbacks_of(known),
                     {.timeout_ms = known.timeout_ms, .record = known.record != 0})};
  });
}

unisono_result_t unisono_pipeline_run_step(unisono_pipeline_t pipeline) noexcept {
  return guard([&] {
    expect_handle(pipeline, "pipeline");
    pipeline->pipeline.run_step();
  });
}

unisono_result_t unisono_pipeline_times(unisono_pipeline_t pipeline, const char** text) noexcept {
  return guard([&] {
    expect_place(text, "text");
    *text = nullptr;
    expect_handle(pipeline, "pipeline");
    pipeline->times = pipeline->pipeline.times_json();
    *text = pipeline->times.c_str();
  });
}

std::size_t unisono_pipeline_most_bytes(unisono_pipeline_t pipeline) noexcept {
  return pipeline == nullptr ? 0 : pipeline->pipeline.most_bytes_held();
}

unisono_result_t unisono_pipeline_free(unisono_pipeline_t* pipeline) noexcept {
  return guard([&] {
    expect_place(pipeline, "pipeline");
    delete std::exchange(*pipeline, nullptr);
  });
}
