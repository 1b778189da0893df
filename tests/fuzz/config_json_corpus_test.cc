// Runs published config.json files, whole, damaged, and with each key removed or set to an invalid
// size: none may crash or hang, `good_*` must be accepted, `bad_*` refused, and a refusal must name
// the key. The folder is an argument.
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/testing_sanitizers.h"
#include "config_json_property.h"
#include "corpus.h"

namespace unisono {
namespace {

using nlohmann::json;

TEST(ConfigJsonCorpus, GoodIsTakenAndBadRefused) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::config_json_property(file.text), "");
    EXPECT_EQ(static_cast<bool>(planner::parse_config_json(file.text, "x")),
              file.name.starts_with("good_"));
  }
  EXPECT_GE(files.size(), 30U);
}

TEST(ConfigJsonCorpus, DamagedFilesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 20, fuzz::config_json_property);
  }
}

// `wrong` is an invalid size: a refusal must name its key.
void expect_to_hold(const std::string& text, const std::string& key, bool is_wrong) {
  ASSERT_EQ(fuzz::config_json_property(text), "") << key << ": " << text;
  const Parsed<planner::ModelConfig> parsed = planner::parse_config_json(text, "x");
  if (!parsed && is_wrong) {
    ASSERT_NE((parsed.message + parsed.position).find(key), std::string::npos)
        << key << ": " << parsed.message;
  }
}

// Applies `change` to each key of a part of a document.
void change_keys(const json& document, const json::json_pointer& part, bool is_good) {
  const json wrong[] = {0,     -1,      1.5,           1e300, 9'007'199'254'740'993,
                        "x",   nullptr, json::array(), true,  json::object(),
                        "@@@@"};
  for (const auto& [key, value] : document.at(part).items()) {
    json without = document;
    without[part].erase(key);
    expect_to_hold(without.dump(), key, false);
    constexpr std::size_t kStride = kSanitized ? 5 : 1;
    for (std::size_t i = key.size() % kStride; i < std::size(wrong); i += kStride) {
      const json& other = wrong[i];
      json with = document;
      with[part][key] = other;
      std::string text = with.dump();
      if (const std::size_t at = text.find("\"@@@@\""); at != std::string::npos) {
        text.replace(at, 6, "Infinity");
      }
      const bool is_size = is_good && value.is_number_integer() && (other == -1 || other == "x");
      expect_to_hold(text, key, is_size);
    }
  }
}

TEST(ConfigJsonCorpus, EachKeyMayBeWrong) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    const json document = json::parse(file.text, nullptr, false);
    if (!document.is_object()) {
      continue;  // Python's infinities
    }
    SCOPED_TRACE(file.name);
    const bool is_good = file.name.starts_with("good_");
    change_keys(document, json::json_pointer(""), is_good);
    for (const char* part : {"text_config", "quantization_config"}) {
      if (document.contains(part)) {
        change_keys(document, json::json_pointer(std::string("/") + part), is_good);
      }
    }
  }
}

}  // namespace
}  // namespace unisono
