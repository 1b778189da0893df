// The parts of `unisono plan-model`.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "planner/config_json.h"
#include "planner/goodput.h"
#include "planner/measured.h"
#include "planner/search.h"
#include "planner/stacks.h"

namespace unisono::cli {

// The command's arguments.
struct ModelQuestion {
  planner::ModelShape shape = {};
  planner::ConfigAccount account = {};  // for a config.json
  Topology topology = {};
  planner::Cluster cluster = {};
  planner::Stack stack = {};                       // for training
  std::optional<planner::Evidence> measured = {};  // from --measured
  std::vector<std::string> fitted = {};            // lines about the result of --measured

  planner::Levels levels(const planner::TrainingTask& task) const;
};

// Returns a known model, or the model of a config.json. Throws UsageError, which points to `help`.
planner::ModelConfig read_model(const std::string& name, std::string_view help);
// Returns the device of --device, or of the topology's name. Throws UsageError, which points to
// `help`.
planner::DeviceModel read_device(const Arguments& arguments, const Topology& topology,
                                 std::string_view help);

// Reads the model, the machine, the stack and --measured. Throws UsageError.
ModelQuestion read_model_question(const Arguments& arguments);

planner::TrainingTask read_training_task(const Arguments& arguments, const ModelQuestion& question);
// Returns nothing without --mtbf.
std::optional<planner::Goodput> read_goodput(const Arguments& arguments,
                                             const ModelQuestion& question,
                                             const planner::TrainingTask& task);
// Keeps weights as the checkpoint stores them, unless --precision is given.
planner::ServingTask read_serving_task(const Arguments& arguments, ModelQuestion& question);
// Notes in the account if requests are longer than the config.json allows.
void note_length(ModelQuestion& question, double tokens);

// For --step: writes the layout's step, for one round of the pipeline, as a workload. Throws
// UsageError.
void write_step(const ModelQuestion& question, const planner::TrainingTask& task,
                const planner::Layout& layout, const std::string& path);

// For --simulate: simulates the steps of the first layouts on the topology, and ranks them by the
// simulated time.
void simulate_best(const ModelQuestion& question, const planner::TrainingTask& task, int count,
                   const Console& console, planner::Ranking<planner::TrainingEstimate>& ranking);

// Returns another program's options for the layout: "megatron", "torchtitan" or "vllm".
std::string launch_flags(std::string_view program, const planner::Layout& layout);
std::string launch_flags(std::string_view program, const planner::ServingLayout& layout);

// Doubles the nodes of the machine of --on until a layout fits, and returns the answer of `fits`.
// Returns an empty text if nothing fits, or if the machine is not a preset with nodes or hosts.
std::string larger_machine(const ModelQuestion& question, const std::string& on,
                           const std::function<bool(const planner::Cluster&)>& fits);

void print_training(const ModelQuestion& question, const planner::TrainingTask& task,
                    const planner::Ranking<planner::TrainingEstimate>& ranking,
                    const Arguments& arguments, const Console& console);
void print_serving(const ModelQuestion& question, const planner::ServingTask& task,
                   const planner::Ranking<planner::ServingEstimate>& ranking,
                   const Arguments& arguments, const Console& console);

// Prints one layout, part by part.
void print_explanation(const ModelQuestion& question, const planner::TrainingTask& task,
                       const planner::TrainingEstimate& estimate);

// Describes the measurements that the level of this question's layouts is based on.
std::string evidence_text(const ModelQuestion& question, const planner::TrainingTask& task);

// "none", "1f1b" or "interleaved 1f1b".
std::string schedule_of(const planner::Layout& layout);

// Returns the plan as data (unisono.plan_model/1).
nlohmann::ordered_json plan_json(const ModelQuestion& question, const planner::TrainingTask& task,
                                 const planner::Ranking<planner::TrainingEstimate>& ranking);
nlohmann::ordered_json plan_json(const ModelQuestion& question, const planner::ServingTask& task,
                                 const planner::Ranking<planner::ServingEstimate>& ranking);
nlohmann::ordered_json goodput_json(const std::optional<planner::Goodput>& goodput);
nlohmann::ordered_json explanation_json(const ModelQuestion& question,
                                        const planner::TrainingTask& task,
                                        const planner::TrainingEstimate& estimate);
// Returns the rankings for links and batches around the requested ones, for the page's sliders,
// with `most` layouts each.
nlohmann::ordered_json what_if_json(const ModelQuestion& question,
                                    const planner::TrainingTask& task,
                                    const planner::SearchOptions& options);
nlohmann::ordered_json what_if_json(const ModelQuestion& question, const planner::ServingTask& task,
                                    const planner::ServingLimits& limits, std::size_t most);

}  // namespace unisono::cli
