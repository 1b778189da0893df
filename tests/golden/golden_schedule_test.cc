// Golden files: every algorithm for 4 ranks, and for 5 where a power of two is a special case, as
// text that a reviewer can read. The folder is an argument; `--update` before it writes the files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "algorithms/catalog.h"
#include "schedule/text.h"

namespace unisono {
namespace {

namespace fs = std::filesystem;

// File name to text. Rooted algorithms have root 1, so that root 0 is not taken for granted.
std::map<std::string, std::string> wanted_files() {
  std::map<std::string, std::string> files;
  for (const Algorithm* algorithm : catalog()) {
    for (const int ranks : {4, 5}) {
      const Shape shape{.ranks = ranks, .root = is_rooted(algorithm->collective) ? 1 : 0};
      if (!can_serve(*algorithm, shape)) {
        continue;
      }
      const std::string name = std::string(to_string(algorithm->collective)) + "_" +
                               std::string(algorithm->name) + "_n" + std::to_string(ranks) + ".txt";
      files[name] = to_text(build_schedule(*algorithm, shape));
    }
  }
  return files;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Writes all files and removes those of algorithms that are gone.
void update(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") {
      fs::remove(entry.path());
    }
  }
  for (const auto& [name, text] : wanted_files()) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
}

class Golden : public testing::Test {
 public:
  explicit Golden(fs::path folder) : folder_(std::move(folder)) {}

  void TestBody() override {
    const std::map<std::string, std::string> wanted = wanted_files();
    for (const auto& [name, text] : wanted) {
      EXPECT_EQ(read(folder_ / name), text) << name;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      EXPECT_TRUE(wanted.contains(entry.path().filename().string())) << entry.path();
    }
  }

 private:
  fs::path folder_;
};

}  // namespace
}  // namespace unisono

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool is_update = argc == 3 && std::string_view(argv[1]) == "--update";
  if (argc != 2 && !is_update) {
    std::cerr << "usage: " << argv[0] << " [--update] FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[argc - 1];
  if (is_update) {
    unisono::update(folder);
    return 0;
  }
  testing::RegisterTest("Golden", "SchedulesAreAsApproved", nullptr, nullptr, __FILE__, __LINE__,
                        [folder]() -> testing::Test* { return new unisono::Golden(folder); });
  return RUN_ALL_TESTS();
}
