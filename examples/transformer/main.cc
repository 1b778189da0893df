// Trains a small GPT under every layout of a list, and compares the results with one process.
//
//   transformer --save FOLDER              trains in one process, and saves the results
//   unisono run -n 4 -- transformer --compare FOLDER [--only "dp=2,tp=2 sp"]
//   unisono run -n 4 -- transformer --try "dp=2,tp=2 sp"     trains two steps without a comparison
//
// --compare trains the layouts for this number of ranks from the same weights on the same data, and
// prints a table of the differences in losses and weights from one process. Sums have another order
// then, so the bits differ; the bounds below hold for 20 steps. The last line counts all layouts,
// right layouts and refused layouts. The exit status is 1 unless all are right.
//
// --steps N trains N steps instead of 20.
//
// With --same-bits before --save and --compare, sums have the same order under every layout. The
// table then shows hashes of all losses and weights, which must equal those of one process.
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <unisono/parallel/checkpoint.hpp>
#include <unisono/unisono.hpp>
#include <vector>

#include "compute.h"
#include "train.h"

namespace {

namespace up = unisono::parallel;
using transformer::Trained;

constexpr int kSteps = 20;
constexpr const char* kLosses = "training.losses";
// Bounds on the difference of a step's loss, and of a weight after the last step; the learning rate
// is 0.001.
constexpr double kLossBound = 1e-5;
constexpr double kWeightBound = 1e-4;

// FNV hash of all bits.
class BitHash {
 public:
  template <typename T>
  void add(const std::vector<T>& values) {
    for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) {
      value_ = (value_ ^ reinterpret_cast<const unsigned char*>(values.data())[i]) * 1099511628211U;
    }
  }
  std::string text() const {
    std::array<char, 17> text;
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value_));
    return text.data();
  }

 private:
  std::uint64_t value_ = 14695981039346656037U;
};

struct Hashes {
  std::string losses;
  std::string weights;
  explicit Hashes(const Trained& trained) {
    BitHash of_losses;
    of_losses.add(trained.losses);
    losses = of_losses.text();
    BitHash of_weights;
    for (const auto& [name, values] : trained.weights) {
      of_weights.add(values);
    }
    weights = of_weights.text();
  }
  bool operator==(const Hashes&) const = default;
};

struct Options {
  std::string save;
  std::string compare;
  std::string only;
  std::string tried;
  std::string steps;
  bool same_bits = false;
};

// Errors: std::invalid_argument.
int steps_of(const Options& options) {
  int steps = kSteps;
  const char* const end = options.steps.data() + options.steps.size();
  if (!options.steps.empty()) {
    const auto [after, error] = std::from_chars(options.steps.data(), end, steps);
    if (error != std::errc{} || after != end || steps < 1) {
      throw std::invalid_argument("transformer: --steps must be a number, not '" + options.steps +
                                  "'");
    }
  }
  return steps;
}

void save(unisono::Communicator& world, const std::string& folder, Trained& trained) {
  std::vector<up::Saved> tensors;
  for (auto& [name, values] : trained.weights) {
    tensors.push_back(
        {.name = name, .shape = {values.size()}, .part = up::Tensor::of(values, {values.size()})});
  }
  tensors.push_back({.name = kLosses,
                     .shape = {trained.losses.size()},
                     .part = up::Tensor::of(trained.losses, {trained.losses.size()})});
  up::save_checkpoint(world, folder, tensors);
}

Trained load(const std::string& folder) {
  Trained trained;
  for (const up::SavedTensor& saved : up::list_checkpoint(folder)) {
    if (saved.name == kLosses) {
      trained.losses.resize(saved.shape.at(0));
      const up::Saved wanted{.name = saved.name,
                             .shape = saved.shape,
                             .part = up::Tensor::of(trained.losses, saved.shape)};
      up::load_checkpoint(folder, {&wanted, 1});
      continue;
    }
    std::vector<float>& values = trained.weights[saved.name];
    values.resize(saved.shape.at(0));
    const up::Saved wanted{
        .name = saved.name, .shape = saved.shape, .part = up::Tensor::of(values, saved.shape)};
    up::load_checkpoint(folder, {&wanted, 1});
  }
  return trained;
}

bool compare(unisono::Communicator& world, const Options& options) {
  const transformer::Config config;
  const Trained reference = load(options.compare);
  std::vector<transformer::Layout> layouts = transformer::layouts_on(world.size());
  if (!options.only.empty()) {
    layouts = {transformer::parse_layout(options.only)};
  }
  std::size_t right = 0;
  std::size_t refused = 0;
  for (transformer::Layout& layout : layouts) {
    layout.same_bits = options.same_bits;
    Trained trained;
    try {
      trained = transformer::train(world, layout, config, steps_of(options));
    } catch (const unisono::Error& error) {
      if (error.code() != unisono::ErrorCode::config) {
        throw;
      }
      ++refused;  // every rank refuses before training
      if (world.rank() == 0) {
        std::printf("%2d  %-42s refused: %s\n", layout.ranks, layout.text.c_str(), error.what());
      }
      continue;
    }
    if (options.same_bits) {
      const Hashes hashes(trained);
      const bool is_same = hashes == Hashes(reference);
      right += is_same ? 1 : 0;
      if (world.rank() == 0) {
        std::printf("%2d  %-42s %8.4f  %s  %s  %7.1f  %s\n", layout.ranks, layout.text.c_str(),
                    trained.losses.back(), hashes.losses.c_str(), hashes.weights.c_str(),
                    trained.step_ms, is_same ? "same bits" : "OTHER BITS");
        std::fflush(stdout);
      }
      continue;
    }
    const transformer::Difference far = transformer::difference(trained, reference);
    const bool is_right = far.loss <= kLossBound && far.weight <= kWeightBound;
    right += is_right ? 1 : 0;
    if (world.rank() == 0) {
      std::printf("%2d  %-36s %8.4f %8.4f   %8.1e   %8.1e  %7.1f  %s\n", layout.ranks,
                  layout.text.c_str(), trained.losses.front(), trained.losses.back(), far.loss,
                  far.weight, trained.step_ms, is_right ? "right" : "WRONG");
      std::fflush(stdout);
    }
  }
  if (world.rank() == 0) {
    std::printf("# layouts on %d rank%s: %zu, %s: %zu, refused: %zu\n", world.size(),
                world.size() == 1 ? "" : "s", layouts.size(),
                options.same_bits ? "with the same bits" : "right", right, refused);
  }
  return right == layouts.size();
}

int run(const Options& options) {
  auto world = unisono::Communicator::connect();
  if (!options.tried.empty()) {
    transformer::Layout layout = transformer::parse_layout(options.tried);
    layout.same_bits = options.same_bits;
    transformer::train(world, layout, {}, 2);
    return 0;
  }
  if (!options.compare.empty()) {
    return compare(world, options) ? 0 : 1;
  }
  if (world.size() != 1) {
    std::fprintf(stderr, "transformer: --save needs a single process\n");
    return 2;
  }
  transformer::Layout alone = transformer::parse_layout("tp=1");
  alone.same_bits = options.same_bits;
  Trained trained = transformer::train(world, alone, {}, steps_of(options));
  std::printf("# 4 layers, 256 wide, 8 heads, vocabulary 512; %d steps; products by %s\n",
              steps_of(options),
              options.same_bits ? "loops in one order" : transformer::product_library());
  std::printf("# one process: loss %.4f -> %.4f, %.1f ms a step\n", trained.losses.front(),
              trained.losses.back(), trained.step_ms);
  if (options.same_bits) {
    const Hashes hashes(trained);
    std::printf("# hash of all losses %s, of all weights %s\n", hashes.losses.c_str(),
                hashes.weights.c_str());
    std::printf("# n  %-42s %8s  %-16s  %-16s  %7s\n", "layout", "last", "losses", "weights",
                "ms/step");
  } else {
    std::printf("# bounds: loss %.0e, weight %.0e from one process\n", kLossBound, kWeightBound);
    std::printf("# n  %-36s %8s %8s   %8s   %8s  %7s\n", "layout", "first", "last", "loss+-",
                "weight+-", "ms/step");
  }
  save(world, options.save, trained);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.same_bits = argc > 1 && std::strcmp(argv[1], "--same-bits") == 0;
  const int first = options.same_bits ? 2 : 1;
  for (int i = first; i + 1 < argc; i += 2) {
    std::string* value = std::strcmp(argv[i], "--save") == 0      ? &options.save
                         : std::strcmp(argv[i], "--compare") == 0 ? &options.compare
                         : std::strcmp(argv[i], "--only") == 0    ? &options.only
                         : std::strcmp(argv[i], "--try") == 0     ? &options.tried
                         : std::strcmp(argv[i], "--steps") == 0   ? &options.steps
                                                                  : nullptr;
    if (value == nullptr) {
      break;
    }
    *value = argv[i + 1];
  }
  const std::size_t tasks = static_cast<std::size_t>(!options.save.empty()) +
                            static_cast<std::size_t>(!options.compare.empty()) +
                            static_cast<std::size_t>(!options.tried.empty());
  if ((argc - first) % 2 != 0 || tasks != 1) {
    std::fprintf(
        stderr,
        "usage: transformer [--same-bits] --save FOLDER | --compare FOLDER [--only LAYOUT] | "
        "--try LAYOUT  [--steps N]\n");
    return 2;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
