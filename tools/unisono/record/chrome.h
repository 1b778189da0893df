// A recording in the trace event format, which chrome://tracing and Perfetto read.
#pragma once

#include <nlohmann/json.hpp>

namespace unisono::cli {

// `trace`: unisono.trace/1. A process for each rank; in it a track for each group, with slices for
// operations and in them for passes, and further tracks where passes overlap. Messages are arrows.
// Throws UsageError where the recording is not whole.
nlohmann::ordered_json chrome_trace_of(const nlohmann::ordered_json& trace);

}  // namespace unisono::cli
