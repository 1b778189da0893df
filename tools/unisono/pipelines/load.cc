// Loads the pipeline that a command names.
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "cli/failure.h"
#include "cli/text_file.h"
#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/text.h"
#include "pipelines/pipelines.h"

namespace unisono::cli {
namespace {

pipeline::Pipeline load(const std::string& path, const Arguments& arguments) {
  for (const char* option : {"ranks", "microbatches", "chunks"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} cannot be used with a file: {} defines it", option, path));
    }
  }
  const std::string text = read_text_file(path);
  const bool is_json = text.find_first_not_of(" \t\r\n") != std::string::npos &&
                       text[text.find_first_not_of(" \t\r\n")] == '{';
  for (const char* option : {"forward", "input", "weight", "transfer", "lanes", "capacity"}) {
    if (is_json && arguments.has(option)) {
      throw UsageError(
          fmt::format("--{} needs a name or a CSV file: {} defines it itself", option, path));
    }
  }
  Parsed<pipeline::Pipeline> parsed =
      is_json ? pipeline::parse_pipeline_json(text) : pipeline::parse_csv(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     "docs/formats/pipeline.md describes both formats");
  }
  if (!is_json) {
    set_costs(*parsed.value, arguments);
  }
  adjust_costs(*parsed.value, arguments);
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
  const pipeline::PipelineSize shape{
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
  adjust_costs(pipeline, arguments);
  return pipeline;
}

}  // namespace unisono::cli
