// Why a recorded job did not go on.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "top/why.h"

namespace unisono::cli {

// What its findings say; of a recording without any: the first operation that did not end. What is
// only about the recording (is_about_the_recording()) comes last. Throws UsageError where the
// recording is not whole.
std::vector<Finding> explain_recording(const nlohmann::ordered_json& trace);
bool is_about_the_recording(const Finding& finding);

}  // namespace unisono::cli
