// Runs the files of a corpus, whole and damaged, as short tests of the fuzzers' properties.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::fuzz {

struct CorpusFile {
  std::string name;
  std::string text;
};

inline std::filesystem::path folder;  // the argument of the program: see corpus_main.cc

inline std::vector<CorpusFile> corpus() {
  std::vector<CorpusFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.push_back({.name = entry.path().filename().string(),
                     .text = {std::istreambuf_iterator<char>(file), {}}});
  }
  std::sort(files.begin(), files.end(),
            [](const CorpusFile& a, const CorpusFile& b) { return a.name < b.name; });
  return files;
}

// Tests that the file keeps the property when it is cut anywhere or single bytes change.
template <typename Property>
void expect_to_hold_damaged(const CorpusFile& file, int rounds, const Property& property) {
  std::mt19937 random(5);
  for (int round = 0; round < rounds && !file.text.empty(); ++round) {
    std::string damaged = file.text;
    for (int change = 0; change < 1 + round % 3; ++change) {
      constexpr std::string_view kSigns = "0123456789-.,:{}[]\"eE ";
      damaged[random() % damaged.size()] = kSigns[random() % kSigns.size()];
    }
    if (round % 5 == 0) {
      damaged.resize(random() % damaged.size());
    }
    ASSERT_EQ(property(damaged), "") << damaged;
  }
}

}  // namespace unisono::fuzz
