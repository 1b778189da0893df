// Pickles and JSON as events; JSON is compared with nlohmann::json.
#include "imports/value_events.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "imports/json_events.h"
#include "imports/pickle.h"

namespace unisono::cli {
namespace {

// A list with one text of `bytes` bytes, repeated `times` times.
std::string pickle_that_repeats(std::size_t bytes, int times) {
  std::string pickle("\x80\x04]X", 4);
  for (int shift = 0; shift < 32; shift += 8) {
    pickle += static_cast<char>(bytes >> shift);
  }
  pickle += std::string(bytes, 'a') +
            "\x94"  // MEMOIZE
            "0(";
  for (int i = 0; i < times; ++i) {
    pickle += std::string("j\0\0\0\0", 5);
  }
  return pickle + "e.";
}

// Counts texts, and accepts no value after the first `most` of them.
struct TextSink final : ValueSink {
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number(double /*value*/) override { return true; }
  bool text(std::string_view /*value*/) override {
    ++texts;
    return true;
  }
  bool start_object() override { return true; }
  bool key(std::string_view /*key*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array() override { return true; }
  bool end_array() override { return true; }
  bool skips_next() override { return texts >= most; }

  int texts = 0;
  int most = 1'000'000;
};

TEST(Pickle, RepeatsTextAsADumpDoes) {
  TextSink sink;
  EXPECT_EQ(read_pickle(pickle_that_repeats(150, 1000), sink), "");
  EXPECT_EQ(sink.texts, 1000);
}

TEST(Pickle, DoesNotMakeMuchTextOfFewBytes) {
  const std::string pickle = pickle_that_repeats(40'000, 2'000);  // 80 MB of 50 kB
  TextSink sink;
  EXPECT_EQ(read_pickle(pickle, sink), "byte 50013: it has too much text");
  TextSink skipping;
  skipping.most = 10;
  EXPECT_EQ(read_pickle(pickle, skipping), "");
  EXPECT_EQ(skipping.texts, 10);
}

TEST(Pickle, KeepsItsMemoInOrder) {
  const auto refusal = [](std::string_view pickle) {
    TextSink sink;
    return read_pickle(pickle, sink);
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(refusal("\x80\x04K\x07q\0q\1q\0."sv), "");
  EXPECT_EQ(refusal("\x80\x04K\x07q\0q\2."sv), "byte 8: it stores a memo entry out of order");
  EXPECT_EQ(refusal("\x80\x04K\x07r\xff\xff\xff\xff."sv),
            "byte 9: it stores a memo entry out of order");
  EXPECT_EQ(refusal("\x80\x04K\x07q\0h\1."sv),
            "byte 8: it reads a memo entry that it has not stored");
}

// Appends what a sink receives, as JSON.
struct PrintingSink final : ValueSink {
  bool null() override { return value("null"); }
  bool boolean(bool value) override { return this->value(value ? "true" : "false"); }
  bool number(double value) override { return this->value(nlohmann::json(value).dump()); }
  bool text(std::string_view value) override { return this->value(nlohmann::json(value).dump()); }
  bool start_object() override { return open("{"); }
  bool start_array() override { return open("["); }
  bool end_object() override { return close("}"); }
  bool end_array() override { return close("]"); }
  bool key(std::string_view key) override {
    value(nlohmann::json(key).dump());
    printed += ':';
    is_first = true;
    return true;
  }
  bool skips_next() override { return skips && ++asked % 2 == 0; }

  bool value(const std::string& text) {
    printed += is_first ? text : "," + text;
    is_first = false;
    return true;
  }
  bool open(const std::string& bracket) {
    value(bracket);
    is_first = true;
    return true;
  }
  bool close(const std::string& bracket) {
    printed += bracket;
    is_first = false;
    return true;
  }

  std::string printed;
  bool is_first = true;
  bool skips = false;
  int asked = 0;
};

// All numbers as doubles, as a sink receives them.
nlohmann::json with_doubles(const nlohmann::json& value) {
  nlohmann::json made = value.is_number() ? nlohmann::json(value.get<double>()) : value;
  if (value.is_structured()) {
    for (auto item = made.begin(); item != made.end(); ++item) {
      *item = with_doubles(*item);
    }
  }
  return made;
}

TEST(ReadJson, AgreesWithALibraryAboutDamagedTexts) {
  const std::string whole =
      R"( {"a" : [1, -0.5e+3, 0, -10, 2E-2, 1e-400], "b\u00e9\n\\":"\"é\ud83d\ude00", "":[ ], "c":{},)"
      "\n\t\"d\":[[true,false],[null,{\"e\":\"\"}]] } ";
  int accepted = 0;
  const auto compare = [&accepted](const std::string& text) {
    nlohmann::json known = nlohmann::json::parse(text, nullptr, false);
    if (text.find('\0') != std::string::npos) {
      known = nlohmann::json(nlohmann::json::value_t::discarded);  // there, a 0 ends the text
    }
    PrintingSink sink;
    ASSERT_EQ(read_json(text, sink), !known.is_discarded()) << text;
    PrintingSink skipping;
    skipping.skips = true;
    ASSERT_EQ(read_json(text, skipping), !known.is_discarded()) << text;
    if (!known.is_discarded()) {
      ASSERT_EQ(nlohmann::json::parse(sink.printed), with_doubles(known)) << text;
      ++accepted;
    }
  };
  using namespace std::string_view_literals;
  for (std::size_t at = 0; at <= whole.size(); ++at) {
    compare(whole.substr(0, at));
    for (const char sign : "\"\\{}[],:0-+.eEtn u\x01\x7f\x80\xc3\n\0"sv) {
      std::string changed = whole;
      compare(changed.insert(at, 1, sign));
      if (at < whole.size()) {
        changed = whole;
        changed[at] = sign;
        compare(changed);
      }
    }
    compare(at < whole.size() ? std::string(whole).erase(at, 1) : whole);
  }
  EXPECT_GT(accepted, 500);
}

TEST(ReadJson, RefusesNumbersBeyondADoubleThatCount) {
  PrintingSink sink;
  EXPECT_FALSE(read_json("[1e999]", sink));
}

}  // namespace
}  // namespace unisono::cli
