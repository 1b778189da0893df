// The parts of `unisono pipeline`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "cli/console.h"
#include "pipeline/pipeline.h"
#include "pipeline/run.h"

namespace unisono::cli {

// Returns a pipeline by name, or from a file (CSV or unisono.pipeline/1), which may have no sends
// and receives. Throws UsageError.
pipeline::Pipeline pipeline_of(const std::string& which, const Arguments& arguments);

// Sets times, lanes and capacity from the options, for a pipeline by name or a file without them.
void set_costs(pipeline::Pipeline& pipeline, const Arguments& arguments);
// Applies --factors and --on, also to a file with costs. Throws UsageError.
void adjust_costs(pipeline::Pipeline& pipeline, const Arguments& arguments);
// Returns the run in which concurrent messages share the links of --on, and the messages of a lane
// follow one another. `alone` is the run in which each message has its links to itself.
pipeline::Run on_shared_links(const pipeline::Pipeline& pipeline, const pipeline::Run& alone,
                              const Arguments& arguments);
// Returns each action of each rank with its start and end.
nlohmann::ordered_json spans_json(const pipeline::Pipeline& pipeline, const pipeline::Run& run);

// The options with a time.
inline constexpr const char* kPipelineTimes[] = {"forward", "input", "weight", "transfer"};
bool ends_in_unit(const std::string& value);  // "2ms"
// Returns true if times are microseconds: one of them has a unit, or --on gives the times of
// messages. Otherwise their unit is unknown.
bool are_microseconds(const Arguments& arguments);
std::string pipeline_time(double time, const Arguments& arguments);
nlohmann::ordered_json time_unit_json(const Arguments& arguments);  // "us" or null
// Returns true if a file gives the memory of its stages; otherwise a microbatch of a stage counts
// as 1.
bool holds_bytes(const pipeline::Pipeline& pipeline);
std::string_view memory_unit(const pipeline::Pipeline& pipeline);  // "byte" or "microbatch"
std::string held_text(double held, const pipeline::Pipeline& pipeline);

int list_pipelines(const Console& console);
// `has_more_actions`: the pipeline has sends and receives, and its file has none.
int verify_pipeline(const pipeline::Pipeline& pipeline, bool has_more_actions,
                    const Console& console);
int simulate_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                      const Console& console);
int make_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                  const Console& console);
int show_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                  const Console& console);

}  // namespace unisono::cli
