// Every user mistake of mistakes.h against the exact text that it must be answered with, on every
// rank:
//
//   error_test expected            compares with expected/<name>.txt
//   error_test expected --update   writes what is said now
//
// A rank that goes on must be told at its next operation at the latest: none ends well. Times are
// replaced before the comparison.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/env.h"
#include "bootstrap/testing.h"
#include "mistakes.h"

namespace unisono::testing {
namespace {

std::string answer(const Mistake& mistake, int rank, const std::string& job) {
  ConnectOptions options = comm::testing::options_for(rank, mistake.ranks, job);
  options.timeout_ms = mistake.timeout_ms;
  options.algorithm = mistake.algorithm;
  try {
    Communicator communicator = Communicator::connect(options);
    mistake.make(communicator);
    communicator.barrier();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "NO ERROR";
}

std::string answers(const Mistake& mistake) {
  const std::string job = comm::testing::unique_name(mistake.name.c_str());
  const auto said = comm::testing::as_threads(mistake.ranks,
                                              [&](int rank) { return answer(mistake, rank, job); });
  std::string text;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    text += "rank " + std::to_string(rank) + ": " + said[rank] + "\n";
  }
  return std::regex_replace(text, std::regex("[0-9]+\\.[0-9] s\\b"), "T s");
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool over_network() {
  return read_env("UNISONO_TEST_WORLD").has_value();
}

// Between hosts, other algorithms are chosen.
std::string without_algorithms(const std::string& text) {
  return std::regex_replace(text, std::regex(" \\([a-z_]+\\)"), "");
}

bool check(const Mistake& mistake, const std::filesystem::path& folder, bool update) {
  const std::filesystem::path path = folder / (mistake.name + ".txt");
  const std::string said = answers(mistake);
  if (update) {
    std::ofstream(path) << said;
    return true;
  }
  const std::string expected = contents(path);
  if (said == expected ||
      (over_network() && without_algorithms(said) == without_algorithms(expected))) {
    return true;
  }
  std::printf("%s\n--- expected\n%s+++ said\n%s\n", path.c_str(), expected.c_str(), said.c_str());
  return false;
}

int run(const std::filesystem::path& folder, bool update) {
  int failures = 0;
  std::set<std::string> names;
  for (const auto& some : {argument_mistakes(), disagreement_mistakes(), order_mistakes()}) {
    for (const Mistake& mistake : some) {
      names.insert(mistake.name + ".txt");
      failures += check(mistake, folder, update) ? 0 : 1;
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!names.contains(entry.path().filename())) {
      std::printf("%s: no mistake has this name\n", entry.path().c_str());
      ++failures;
    }
  }
  std::printf("%zu mistakes, %d failed\n", names.size(), failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unisono::testing

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: error_test FOLDER [--update]\n", stderr);
    return 2;
  }
  return unisono::testing::run(argv[1], argc > 2 && std::string(argv[2]) == "--update");
}
