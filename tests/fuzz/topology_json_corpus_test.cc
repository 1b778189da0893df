// Runs the seeds of topologies and workloads, whole, cut anywhere and with single bytes changed:
// none may crash or hang, and `good_*` are taken, `bad_*` refused. The folder is an argument.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>

#include "topology_json_property.h"

namespace unisono {
namespace {

std::filesystem::path folder;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(TopologyCorpus, GoodIsTakenAndBadRefused) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string text = read(entry.path());
    EXPECT_EQ(fuzz::topology_json_property(text), "");
    const bool taken = parse_topology_json(text) || model::parse_workload_json(text);
    EXPECT_EQ(taken, entry.path().filename().string().starts_with("good_"));
    ++files;
  }
  EXPECT_GE(files, 8);
}

// A few seconds of what the fuzzers do for longer.
TEST(TopologyCorpus, DamagedFilesAreNoTrouble) {
  std::mt19937 random(5);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string text = read(entry.path());
    for (int round = 0; round < 300 && !text.empty(); ++round) {
      std::string damaged = text;
      for (int change = 0; change < 1 + round % 3; ++change) {
        const std::size_t place = random() % damaged.size();
        constexpr std::string_view kSigns = "0123456789-.,:{}[]\"eE ";
        damaged[place] = kSigns[random() % kSigns.size()];
      }
      if (round % 5 == 0) {
        damaged.resize(random() % damaged.size());
      }
      ASSERT_EQ(fuzz::topology_json_property(damaged), "") << damaged;
    }
  }
}

}  // namespace
}  // namespace unisono

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  unisono::folder = argv[1];
  return RUN_ALL_TESTS();
}
