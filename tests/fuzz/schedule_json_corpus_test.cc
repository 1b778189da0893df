// Runs the files of a corpus through the schedule parser: `good_*` must be read and verified,
// `bad_*` must be refused, `wrong_*` are read but have findings. The folder is an argument.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "schedule_json_property.h"

namespace unisono {
namespace {

namespace fs = std::filesystem;

class CorpusFile : public testing::Test {
 public:
  explicit CorpusFile(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    std::ifstream file(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(fuzz::schedule_json_property(text), "");
    const Parsed<Schedule> parsed = parse_schedule_json(text);
    const std::string name = path_.filename().string();
    if (name.starts_with("bad_")) {
      EXPECT_FALSE(parsed);
      return;
    }
    ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
    EXPECT_EQ(verify(*parsed.value).empty(), name.starts_with("good_"));
  }

 private:
  fs::path path_;
};

}  // namespace
}  // namespace unisono

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::string name = entry.path().stem().string();
    testing::RegisterTest(
        "Corpus", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [path = entry.path()]() -> testing::Test* { return new unisono::CorpusFile(path); });
    ++files;
  }
  if (files == 0) {
    std::cerr << "no files in " << argv[1] << "\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}
