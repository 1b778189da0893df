// Which pipeline is meant.
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "cli/failure.h"
#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/text.h"
#include "pipeline/transfers.h"
#include "pipelines/pipelines.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

double time_of(const Arguments& arguments, std::string_view option) {
  const double time = arguments.real(option);
  constexpr double kMost = 1e12;
  if (!(time >= 0 && time <= kMost)) {
    throw UsageError(fmt::format("--{} is a time of 0 or more", option));
  }
  return time;
}

// A microbatch takes the same on each rank, however many stages that has.
void set_costs(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  std::vector<double> stages_of_rank(static_cast<std::size_t>(pipeline.ranks), 0);
  for (const int rank : pipeline.stage_rank) {
    ++stages_of_rank[static_cast<std::size_t>(rank)];
  }
  // DualPipe's two stages are the same part of a model for different microbatches.
  const auto copies = static_cast<double>(pipeline.chains.size());
  for (std::size_t stage = 0; stage < pipeline.stage_rank.size(); ++stage) {
    const double share =
        copies / stages_of_rank[static_cast<std::size_t>(pipeline.stage_rank[stage])];
    pipeline.costs.forward[stage] = time_of(arguments, "forward") * share;
    pipeline.costs.input[stage] = time_of(arguments, "input") * share;
    pipeline.costs.weight[stage] = time_of(arguments, "weight") * share;
    pipeline.costs.transfer[stage] = time_of(arguments, "transfer");
  }
}

void set_lanes(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  pipeline.lanes = static_cast<int>(arguments.number("lanes", 1, 2));
  pipeline.capacity =
      static_cast<int>(arguments.number("capacity", 0, std::int64_t{pipeline::kMostActions}));
}

pipeline::Pipeline load(const std::string& path, const Arguments& arguments) {
  for (const char* option : {"ranks", "microbatches", "chunks"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} does not go with a file: {} says it", option, path));
    }
  }
  const std::string text = read_document(path);
  const bool is_json = text.find_first_not_of(" \t\r\n") != std::string::npos &&
                       text[text.find_first_not_of(" \t\r\n")] == '{';
  for (const char* option : {"forward", "input", "weight", "transfer", "lanes", "capacity"}) {
    if (is_json && arguments.has(option)) {
      throw UsageError(
          fmt::format("--{} goes with a name or a CSV: {} says it itself", option, path));
    }
  }
  Parsed<pipeline::Pipeline> parsed =
      is_json ? pipeline::parse_pipeline_json(text) : pipeline::parse_csv(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     "docs/formats/pipeline.md has both formats");
  }
  if (!is_json) {
    set_costs(*parsed.value, arguments);
    set_lanes(*parsed.value, arguments);
  }
  if (!has_transfers(*parsed.value)) {
    add_transfers(*parsed.value);
  }
  return std::move(*parsed.value);
}

}  // namespace

pipeline::Pipeline pipeline_of(const std::string& which, const Arguments& arguments) {
  const pipeline::Entry* entry = pipeline::find_entry(which);
  if (entry == nullptr) {
    if (which.find('.') != std::string::npos || std::filesystem::exists(which)) {
      return load(which, arguments);
    }
    std::vector<std::string_view> names;
    for (const pipeline::Entry* known : pipeline::catalog()) {
      names.push_back(known->name);
    }
    throw UsageError(fmt::format("there is no pipeline schedule '{}'", which),
                     did_you_mean(which, names), "unisono pipeline list");
  }
  const int chunks = entry->chunks != 0 && !arguments.has("chunks")
                         ? entry->chunks
                         : static_cast<int>(arguments.number("chunks", 1, pipeline::kMostRanks));
  const pipeline::Shape shape{
      .ranks = static_cast<int>(arguments.number("ranks", 1, pipeline::kMostRanks)),
      .chunks = chunks,
      .microbatches =
          static_cast<int>(arguments.number("microbatches", 1, pipeline::kMostMicrobatches))};
  const std::string problem = refusal(*entry, shape);
  if (!problem.empty()) {
    throw UsageError(problem, {}, "unisono pipeline list");
  }
  pipeline::Pipeline pipeline = build(*entry, shape);
  set_costs(pipeline, arguments);
  set_lanes(pipeline, arguments);
  return pipeline;
}

}  // namespace unisono::cli
