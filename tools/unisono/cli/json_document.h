// Parses JSON documents of other programs, in any format, as nlohmann::json. Readers of unisono's
// formats use base/json.h, which has its own limits.
#pragma once

#include <string>
#include <string_view>

#include "base/json_limits.h"

namespace unisono::cli {

// Larger than any recording. The parser needs about 100 bytes per value.
inline constexpr JsonLimits kDocumentLimits = {
    .depth = 128, .values = 20'000'000, .has_unique_keys = true};

// Throws UsageError: the text is beyond kDocumentLimits.
void refuse_excessive_json(const std::string& path, std::string_view text);

// Returns a discarded value if the text is not JSON. Throws as above.
template <typename Json>
Json parse_json_document(const std::string& path, std::string_view text) {
  refuse_excessive_json(path, text);
  return Json::parse(text, nullptr, false);
}

}  // namespace unisono::cli
