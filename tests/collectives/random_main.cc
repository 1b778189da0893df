// Random collectives against the oracle:
//
//   random_collectives [--count N] [--seed S] [--ranks 1..9] [--kind threads|processes|both]
//
// Cases are a function of the seed alone. They run in rounds of up to kRound on one group of ranks;
// a round now and then runs several cases at once, on communicators split from the first. A case
// that fails is printed as a line for `collective_cases KIND --case LINE`, and with the seed that
// repeats its round.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "draw_case.h"
#include "ranks.h"
#include "run_case.h"

namespace unisono::testing {
namespace {

constexpr int kRound = 500;
constexpr int kAtOnce = 4;

struct Options {
  long count = 10'000;
  std::uint64_t seed = 0;
  int least = 1;
  int most = 9;
  std::string kind = "both";
};

std::string failure(const Communicator& communicator, const Case& one, const std::string& wrong) {
  return to_line(one) + "\n    rank " + std::to_string(communicator.rank()) + ": " + wrong + "\n";
}

// Several cases in progress on one communicator and on two others of the same ranks.
std::string run_at_once(Communicator& communicator, std::vector<Communicator>& others,
                        const std::vector<Case>& cases) {
  std::vector<std::unique_ptr<CaseRun>> runs;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::size_t which = i % (others.size() + 1);
    Communicator& on = which == 0 ? communicator : others[which - 1];
    runs.push_back(std::make_unique<CaseRun>(on, cases[i]));
    requests.push_back(on.run_async(runs.back()->call()));
  }
  std::string failures;
  for (std::size_t i = cases.size(); i-- > 0;) {
    requests[i].wait();
    const std::string wrong = runs[i]->check();
    failures += wrong.empty() ? "" : failure(communicator, cases[i], wrong + " (several at once)");
  }
  return failures;
}

std::string run_round(Communicator& communicator, std::uint64_t seed, int count) {
  Draw draw(seed);
  std::vector<Communicator> others;
  others.push_back(communicator.split(0, communicator.rank()));
  others.push_back(communicator.split(0, communicator.rank()));
  std::string failures;
  std::vector<Case> cases;
  try {
    for (int done = 0; done < count && failures.empty(); done += static_cast<int>(cases.size())) {
      const auto left = static_cast<std::size_t>(count - done);
      cases.clear();
      for (std::size_t i = draw.one_in(8) ? std::min<std::size_t>(kAtOnce, left) : 1; i > 0; --i) {
        cases.push_back(draw_case(draw, communicator.size()));
      }
      if (cases.size() > 1) {
        failures += run_at_once(communicator, others, cases);
      } else {
        const std::string wrong = run_case(communicator, cases[0]);
        failures += wrong.empty() ? "" : failure(communicator, cases[0], wrong);
      }
    }
  } catch (const std::exception& error) {
    for (const Case& one : cases) {
      failures += failure(communicator, one, error.what());
    }
  }
  return failures;
}

Options parse(int argc, char** argv) {
  Options options;
  options.seed = std::random_device{}();
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--count" && !value.empty()) {
      options.count = std::stol(value);
    } else if (key == "--seed" && !value.empty()) {
      options.seed = std::stoull(value, nullptr, 0);
    } else if (key == "--ranks" && !value.empty()) {
      const std::size_t dots = value.find("..");
      options.least = std::stoi(value);
      options.most = dots == std::string::npos ? options.least : std::stoi(value.substr(dots + 2));
    } else if (key == "--kind" && !value.empty()) {
      options.kind = value;
    } else {
      throw std::runtime_error(
          "usage: random_collectives [--count N] [--seed S] [--ranks 1..9] "
          "[--kind threads|processes|both]");
    }
  }
  return options;
}

int run(const Options& options) {
  std::printf("random_collectives --count %ld --seed 0x%llx --ranks %d..%d --kind %s\n",
              options.count, static_cast<unsigned long long>(options.seed), options.least,
              options.most, options.kind.c_str());
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  long done = 0;
  for (std::uint64_t round = options.seed; done < options.count; ++round) {
    Draw draw(round);
    const int ranks =
        options.least +
        static_cast<int>(draw.below(static_cast<std::size_t>(options.most - options.least) + 1));
    const Ranks kind = options.kind == "threads"     ? Ranks::threads
                       : options.kind == "processes" ? Ranks::processes
                                                     : static_cast<Ranks>(draw.below(2));
    const std::uint64_t seed = draw.next();
    const int count = static_cast<int>(std::min<long>(kRound, options.count - done));
    bool good = true;
    for (const std::string& failures :
         on_ranks(kind, ranks, [&](Communicator& c) { return run_round(c, seed, count); })) {
      good = good && failures.empty();
      std::fputs(failures.c_str(), stdout);
    }
    if (!good) {
      std::printf(
          "FAILED on %s; again: random_collectives --count %d --seed 0x%llx --ranks %d..%d"
          " --kind %s\n",
          to_string(kind), count, static_cast<unsigned long long>(round), options.least,
          options.most, options.kind.c_str());
      return 1;
    }
    done += count;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%ld cases all right in %.1f s\n", done, took.count());
  return 0;
}

}  // namespace
}  // namespace unisono::testing

int main(int argc, char** argv) {
  try {
    return unisono::testing::run(unisono::testing::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
