// What is made of a recording (unisono.trace/1) for somebody who looks at it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "top/why.h"

namespace unisono::cli {

// What its findings say; of a recording without any: the first operation that did not end. What is
// only about the recording (is_about_the_recording()) comes last. Throws UsageError where the
// recording is not whole.
std::vector<Finding> explain_recording(const nlohmann::ordered_json& trace);
bool is_about_the_recording(const Finding& finding);

// In the trace event format, which chrome://tracing and Perfetto read: a process for each rank; in
// it a track for each group, with slices for operations and in them for passes, and further tracks
// where passes overlap. Messages are arrows. Throws UsageError where the recording is not whole.
nlohmann::ordered_json chrome_trace_of(const nlohmann::ordered_json& trace);

// One operation as a recording of its own, so that a page can show it beside what is predicted of
// it.
// `label`: "world #17", or "17". Times count from its beginning, and what is said of the whole
// recording goes along. Throws UsageError where there is no such operation in it.
nlohmann::ordered_json one_operation(const nlohmann::ordered_json& trace, const std::string& label);

}  // namespace unisono::cli
