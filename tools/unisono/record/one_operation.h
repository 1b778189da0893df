// One operation of a recording, as a recording of its own: so that a page can show it beside what
// is predicted of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace unisono::cli {

// `label`: "world #17", or "17". Times count from its beginning, and what is said of the whole
// recording goes along. Throws UsageError where there is no such operation in it.
nlohmann::ordered_json one_operation(const nlohmann::ordered_json& trace, const std::string& label);

}  // namespace unisono::cli
