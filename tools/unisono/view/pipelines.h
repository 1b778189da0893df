// Pipeline schedules in the form of the viewer's page (docs/formats/view.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace unisono::cli {

// Returns every schedule of the catalogue in the shapes that the page offers, with computations
// only: the page adds sends and receives by the rule of src/pipeline/transfers.h.
nlohmann::ordered_json pipelines_data();

// Reads a file of unisono.pipeline/1, or the CSV of torch.distributed.pipelining. Throws UsageError
// with the place of an error.
nlohmann::ordered_json pipeline_file_data(const std::string& path, const std::string& text);

// Reads a file of unisono.pipeline_times/1: the measured and predicted times of a run. Throws as
// above.
nlohmann::ordered_json pipeline_times_data(const std::string& path,
                                           const nlohmann::ordered_json& document);

}  // namespace unisono::cli
