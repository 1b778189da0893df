// Golden files: compares generated text with the files of a folder, which is an argument of the
// program; `--update` before the folder writes them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace unisono::golden {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;  // by name, each ends in ".txt"

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Writes all files and removes those without a schedule.
inline void update(const fs::path& folder, const Files& wanted) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") {
      fs::remove(entry.path());
    }
  }
  for (const auto& [name, text] : wanted) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
}

class Golden : public testing::Test {
 public:
  Golden(fs::path folder, Files wanted) : folder_(std::move(folder)), wanted_(std::move(wanted)) {}

  void TestBody() override {
    for (const auto& [name, text] : wanted_) {
      EXPECT_EQ(read(folder_ / name), text) << name;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      EXPECT_TRUE(wanted_.contains(entry.path().filename().string())) << entry.path();
    }
  }

 private:
  fs::path folder_;
  Files wanted_;
};

// Implements main().
inline int run(int argc, char** argv, const Files& wanted) {
  testing::InitGoogleTest(&argc, argv);
  const bool is_update = argc == 3 && std::string_view(argv[1]) == "--update";
  if (argc != 2 && !is_update) {
    std::cerr << "usage: " << argv[0] << " [--update] FOLDER\n";
    return 2;
  }
  const fs::path folder = argv[argc - 1];
  if (is_update) {
    update(folder, wanted);
    return 0;
  }
  testing::RegisterTest("Golden", "AllIsAsApproved", nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> testing::Test* { return new Golden(folder, wanted); });
  return RUN_ALL_TESTS();
}

}  // namespace unisono::golden
