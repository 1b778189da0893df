// JSON documents that other programs wrote, of any form, as nlohmann::json. Readers of our own
// formats use base/json.h, which has limits of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/json_limits.h"

namespace unisono::cli {

// More than any recording has. The parser takes about 100 bytes for each value.
inline constexpr JsonLimits kDocumentLimits = {
    .depth = 128, .values = 20'000'000, .has_unique_keys = true};

// Throws UsageError: the text is beyond kDocumentLimits.
void refuse_excessive_json(const std::string& path, std::string_view text);

// Discarded if the text is not JSON. Throws as above.
template <typename Json>
Json parse_json_document(const std::string& path, std::string_view text) {
  refuse_excessive_json(path, text);
  return Json::parse(text, nullptr, false);
}

}  // namespace unisono::cli
