// The engine under chaos (chaos.h):
//
//   engine_chaos_test [--seed S] [--count N]
//
// runs N seeds from S on; with a seed alone, that one. Each failure is printed with the command
// that replays it.
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "chaos.h"

namespace unisono::testing {
namespace {

constexpr std::uint64_t kUsual = 2000;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t count = kUsual;
};

Options parse(int argc, char** argv) {
  Options options;
  bool counted = false;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--seed" && !value.empty()) {
      options.seed = std::stoull(value, nullptr, 0);
      options.count = counted ? options.count : 1;
    } else if (key == "--count" && !value.empty()) {
      options.count = std::stoull(value);
      counted = true;
    } else {
      throw std::runtime_error("usage: engine_chaos_test [--seed S] [--count N]");
    }
  }
  return options;
}

int run(const Options& options, const char* program) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t failures = 0;
  std::uint64_t struck = 0;
  for (std::uint64_t seed = options.seed; seed < options.seed + options.count; ++seed) {
    const ChaosTrial trial = draw_chaos(seed);
    const ChaosResult result = run_chaos(trial);
    struck += result.struck ? 1 : 0;
    if (!result.wrong.empty()) {
      ++failures;
      std::printf("FAILED: %s\n%s  again: %s --seed %llu\n", result.wrong.c_str(),
                  to_text(trial).c_str(), program, static_cast<unsigned long long>(seed));
      std::fflush(stdout);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%llu seeds from %llu, %llu with a fault: %llu failed, in %.1f s\n",
              static_cast<unsigned long long>(options.count),
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(struck), static_cast<unsigned long long>(failures),
              took.count());
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unisono::testing

int main(int argc, char** argv) {
  try {
    return unisono::testing::run(unisono::testing::parse(argc, argv), argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
