// Pipeline schedules as the viewer's page carries them (docs/formats/view.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace unisono::cli {

// Every schedule of the catalogue in the shapes that the page offers, computations only: the page
// adds sends and receives by the rule of src/pipeline/transfers.h.
nlohmann::ordered_json pipelines_data();

// A file of unisono.pipeline/1, or the CSV of torch.distributed.pipelining. Throws UsageError with
// the place where it cannot be read.
nlohmann::ordered_json pipeline_file_data(const std::string& path, const std::string& text);

// A file of unisono.pipeline_times/1, what a run took and what was predicted. Throws as above.
nlohmann::ordered_json pipeline_times_data(const std::string& path,
                                           const nlohmann::ordered_json& document);

}  // namespace unisono::cli
