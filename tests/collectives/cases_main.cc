// Runs case files:
//
//   collective_cases threads|processes [--case "LINE" | FILE...]
//
// All cases of one number of ranks run on one communicator, one after the other. Prints each case
// that fails as a line that --case takes.
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranks.h"
#include "run_case.h"

namespace unisono::testing {
namespace {

using CasesByRanks = std::map<int, std::vector<Case>>;

void add_line(CasesByRanks& cases, const std::string& line) {
  for (const Case& one : parse_cases(line)) {
    cases[one.ranks].push_back(one);
  }
}

CasesByRanks read(const std::vector<std::string>& words) {
  CasesByRanks cases;
  if (words.size() == 2 && words[0] == "--case") {
    add_line(cases, words[1]);
    return cases;
  }
  for (const std::string& name : words) {
    std::ifstream file(name);
    if (!file) {
      throw std::runtime_error("cannot read " + name);
    }
    for (std::string line; std::getline(file, line);) {
      add_line(cases, line);
    }
  }
  return cases;
}

// Stops at the first exception, because the communicator is then unusable.
std::string run_all(Communicator& communicator, const std::vector<Case>& cases) {
  std::string failures;
  for (const Case& one : cases) {
    std::string wrong;
    bool lost = false;
    try {
      wrong = run_case(communicator, one);
    } catch (const std::exception& error) {
      wrong = error.what();
      lost = true;
    }
    if (!wrong.empty()) {
      failures +=
          to_line(one) + "\n    rank " + std::to_string(communicator.rank()) + ": " + wrong + "\n";
    }
    if (lost) {
      break;
    }
  }
  return failures;
}

int run(const std::vector<std::string>& words) {
  if (words.empty() || (words[0] != "threads" && words[0] != "processes")) {
    std::fputs("usage: collective_cases threads|processes [--case LINE | FILE...]\n", stderr);
    return 2;
  }
  const Ranks kind = words[0] == "threads" ? Ranks::threads : Ranks::processes;
  const CasesByRanks cases = read({words.begin() + 1, words.end()});
  std::size_t total = 0;
  bool good = !cases.empty();
  for (const auto& [ranks, list] : cases) {
    const auto results = on_ranks(
        kind, ranks, [&](Communicator& communicator) { return run_all(communicator, list); });
    for (const std::string& result : results) {
      good = good && result.empty();
      std::fputs(result.c_str(), stdout);
    }
    total += list.size();
  }
  std::printf("%zu cases on %s: %s\n", total, to_string(kind), good ? "all right" : "FAILED");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace unisono::testing

int main(int argc, char** argv) {
  try {
    return unisono::testing::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
