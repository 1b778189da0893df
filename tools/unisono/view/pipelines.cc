#include "view/pipelines.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/failure.h"
#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/text.h"
#include "pipeline/transfers.h"

namespace unisono::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRanks[] = {2, 3, 4, 6, 8};
constexpr int kMostTimesRanks = 3;  // microbatches: as many as ranks, twice and three times that
constexpr std::size_t kMostActions = 200'000;

Json chains_json(const pipeline::Pipeline& pipeline) {
  Json chains = Json::array();
  for (const pipeline::Chain& chain : pipeline.chains) {
    chains.push_back({{"stages", chain.stages}, {"first", chain.first}, {"count", chain.count}});
  }
  return chains;
}

Json schedule_json(const pipeline::Entry& entry, pipeline::PipelineSize shape) {
  const pipeline::Pipeline pipeline = entry.build(shape);
  Json actions = Json::array();
  for (const std::vector<pipeline::Action>& row : pipeline.actions) {
    actions.push_back(pipeline::actions_text(row));
  }
  return {{"microbatches", shape.microbatches},
          {"stages", pipeline.stage_rank},
          {"chains", chains_json(pipeline)},
          {"actions", actions}};
}

// Joins the texts of a list to one line of the CSV.
std::string joined(const Json& row) {
  std::string line;
  for (const Json& action : row) {
    line += (line.empty() ? "" : ",") + action.get<std::string>();
  }
  return line;
}

}  // namespace

Json pipelines_data() {
  Json rows = Json::array();
  for (const pipeline::Entry* entry : pipeline::catalog()) {
    Json schedules = Json::array();
    for (const int ranks : kRanks) {
      for (int times = 1; times <= kMostTimesRanks; ++times) {
        const pipeline::PipelineSize shape{.ranks = ranks,
                                           .chunks = entry->chunks == 0 ? 2 : entry->chunks,
                                           .microbatches = times * ranks};
        if (pipeline::refusal(*entry, shape).empty()) {
          schedules.push_back(schedule_json(*entry, shape));
        }
      }
    }
    rows.push_back({{"name", entry->name},
                    {"summary", entry->summary},
                    {"source", entry->source},
                    {"schedules", schedules}});
  }
  return rows;
}

Json pipeline_file_data(const std::string& path, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  Parsed<pipeline::Pipeline> parsed =
      is_json ? pipeline::parse_pipeline_json(text) : pipeline::parse_csv(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     "docs/formats/pipeline.md describes both formats");
  }
  pipeline::Pipeline& pipeline = *parsed.value;
  if (!is_json) {
    pipeline.name = path.substr(path.rfind('/') + 1);
  }
  if (!pipeline::has_transfers(pipeline)) {
    pipeline::add_transfers(pipeline);
  }
  std::size_t count = 0;
  for (const std::vector<pipeline::Action>& row : pipeline.actions) {
    count += row.size();
  }
  if (count > kMostActions) {
    throw UsageError(fmt::format("{} actions are too many for a page", count),
                     fmt::format("at most {}", kMostActions),
                     "unisono pipeline show prints any pipeline");
  }
  return Json::parse(pipeline::to_json(pipeline));
}

Json pipeline_times_data(const std::string& path, const Json& document) {
  const auto refuse = [&](const std::string& place) {
    throw UsageError(fmt::format("{} at {}: an action has no time", path, place),
                     "Pipeline::times_json() writes such a file", "docs/formats/pipeline.md");
  };
  if (!document.contains("pipeline")) {
    refuse("/pipeline");
  }
  Json data = document;
  data["pipeline"] = pipeline_file_data(path, document["pipeline"].dump());
  const Json& rows = data["pipeline"]["actions"];
  for (const char* key : {"ranks", "predicted"}) {
    if (!data.contains(key) || !data[key].is_array() || data[key].size() != rows.size()) {
      refuse(fmt::format("/{}", key));
    }
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      // An overlap is one text in the file, and precedes its parts here.
      const auto actions = pipeline::parse_actions(joined(rows[rank]));
      if (!data[key][rank].is_array() || data[key][rank].size() != actions.value->size()) {
        refuse(fmt::format("/{}/{}", key, rank));
      }
      for (std::size_t i = 0; i < actions.value->size(); ++i) {
        const Json& time = data[key][rank][i];
        if (!time.is_object() || !time.contains("start") || !time["start"].is_number() ||
            !time.contains("end") || !time["end"].is_number() ||
            time.value("action", "") != to_string((*actions.value)[i])) {
          refuse(fmt::format("/{}/{}/{}", key, rank, i));
        }
      }
    }
  }
  return data;
}

}  // namespace unisono::cli
