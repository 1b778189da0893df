// Trains on some ranks of a job, and answers on the others with the latest weights. See kUsage.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <unisono/parallel/checkpoint.hpp>
#include <unisono/unisono.hpp>
#include <vector>

#include "llm/matrix.h"
#include "rollout/engine.h"

namespace {

namespace up = unisono::parallel;

constexpr const char* kUsage =
    R"(usage: unisono run -n N -- rollout [options]
       rollout --compare FOLDER [--tokens N]

Trains a small Llama on the first ranks of a job. Every few steps it gives its weights to the other
ranks, which answer ten prompts with them under tensor parallelism. The trainer never waits for an
answer: it skips a step whose weights the engine has no room for, except the last.

  --layout TEXT     the trainer's layout, as of examples/transformer; default: "dp=2,tp=2 sp"
  --steps N         training steps; default: 40
  --every N         steps between two transfers; default: 10
  --tokens N        tokens of an answer; default: 16
  --save FOLDER     save the weights of each transfer as a checkpoint, and the answers
  --compare FOLDER  on one process: answer with each checkpoint of --save, and compare; the exit
                    status is 1 if a token differs
)";

struct Options {
  std::string layout = "dp=2,tp=2 sp";
  std::string save = {};
  std::string compare = {};
  int steps = 40;
  int every = 10;
  int tokens = 16;
};

Options parse_options(const std::vector<std::string>& words) {
  Options options;
  const std::map<std::string, std::string*> texts = {
      {"--layout", &options.layout}, {"--save", &options.save}, {"--compare", &options.compare}};
  const std::map<std::string, int*> numbers = {
      {"--steps", &options.steps}, {"--every", &options.every}, {"--tokens", &options.tokens}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto text = texts.find(words[i]);
    const auto number = numbers.find(words[i]);
    if ((text == texts.end() && number == numbers.end()) || i + 1 == words.size()) {
      throw std::invalid_argument("rollout: cannot use '" + words[i] + "'");
    }
    const std::string& value = words[i + 1];
    if (text != texts.end()) {
      *text->second = value;
      continue;
    }
    const char* const end = value.data() + value.size();
    const auto [after, error] = std::from_chars(value.data(), end, *number->second);
    if (error != std::errc{} || after != end || *number->second < 1) {
      throw std::invalid_argument("rollout: " + words[i] + " must be 1 or more, not '" + value +
                                  "'");
    }
  }
  return options;
}

// Saves the trainer's weights; if groups have equal parts, the first group saves them.
void save(unisono::Communicator& trainers, const std::filesystem::path& folder,
          const std::vector<transformer::HeldWeight>& held, const transformer::Parts& parts) {
  std::vector<up::Saved> tensors;
  for (const transformer::HeldWeight& one : held) {
    const transformer::Weight& weight = one.weight;
    up::Saved saved{.name = weight.name, .shape = rollout::shape_of(weight), .part = {}};
    const int place = trainers.rank() - one.first_rank;
    const bool is_cut = weight.cut != transformer::Weight::Cut::none;
    if (place >= 0 && place < (is_cut ? one.tp : 1)) {
      std::vector<std::size_t> shape = saved.shape;
      saved.first.resize(shape.size());
      if (is_cut) {
        const std::size_t dim = weight.cut == transformer::Weight::Cut::columns ? 1 : 0;
        const up::Range mine = up::shard_range(shape[dim], one.tp, place);
        shape[dim] = mine.count;
        saved.first[dim] = mine.first;
      }
      saved.part = up::Tensor::of_const(parts.at(weight.name), shape);
    }
    tensors.push_back(std::move(saved));
  }
  up::save_checkpoint(trainers, folder, tensors);
}

// Prints on one rank of the trainer what the job does.
void introduce(const rollout::HandOver& hand_over, const Options& options, int ranks,
               const transformer::Layout& layout) {
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / 0x1p20; };
  const up::ReshardPlan& plan = hand_over.plan();
  const int engine = ranks - layout.ranks;
  std::printf("trainer  %d ranks, %s: %d steps of a small Llama\n", layout.ranks,
              options.layout.c_str(), options.steps);
  std::printf("engine   %d ranks, tp=%d: answers with the weights of every %d steps\n", engine,
              engine, options.every);
  std::printf("reshard  %zu tensors: a transfer sends %.1f MiB; no plan sends less than %.1f MiB\n",
              plan.tensors.size(), mib(plan.bytes_sent()), mib(up::reshard_bound(plan).bytes_sent));
  std::printf("rule     token 5t + 3 follows token t in three of four places of the data\n");
  std::fflush(stdout);
}

void train(rollout::HandOver& hand_over, unisono::Communicator& trainers, const Options& options,
           const transformer::Config& config, const transformer::Layout& layout) {
  const auto held = transformer::held_weights(config, layout);
  std::vector<double> given_ms;  // of each transfer
  int skipped = 0;
  const auto after = [&](int step, double loss, const std::function<transformer::Parts()>& parts) {
    const bool is_last = step == options.steps;
    if (step % options.every != 0 && !is_last) {
      return;
    }
    const bool speaks = trainers.rank() == 0;
    if (is_last && speaks) {
      std::printf("trainer  %d steps done\n", step);
      std::fflush(stdout);  // flush before waiting
    }
    // Initially the engine is ready, and its report is on its way.
    const bool is_wanted = hand_over.is_wanted(trainers, is_last || given_ms.empty());
    if (speaks) {
      std::printf("trainer  step %3d: loss %.4f%s\n", step, loss,
                  is_wanted ? "" : "; the engine is busy");
      std::fflush(stdout);
    }
    if (!is_wanted) {
      ++skipped;
      return;
    }
    const transformer::Parts now = parts();
    const auto begin = std::chrono::steady_clock::now();
    hand_over.give(now, {.step = step, .is_last = is_last});
    given_ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    if (!options.save.empty()) {
      save(trainers, rollout::checkpoint_of(options.save, step), held, now);
    }
  };
  const double step_ms = transformer::train(trainers, layout, config, options.steps, after).step_ms;
  if (trainers.rank() == 0) {
    std::sort(given_ms.begin(), given_ms.end());
    std::printf("trainer  %zu transfers, %d skipped because the engine was busy\n", given_ms.size(),
                skipped);
    std::printf("trainer  a transfer took %.0f ms, a training step %.0f ms (medians)\n",
                given_ms[given_ms.size() / 2], step_ms);
  }
}

int run(const Options& options) {
  const transformer::Config config{.llama = true};
  const auto tokens = static_cast<std::size_t>(options.tokens);
  auto world = unisono::Communicator::connect();
  llm::set_product_threads(1);
  if (!options.compare.empty()) {
    if (world.size() != 1) {
      throw std::invalid_argument("rollout: --compare needs a single process");
    }
    return rollout::compare_with_checkpoints(world, rollout::engine_shape(config), tokens,
                                             options.compare)
               ? 0
               : 1;
  }
  const transformer::Layout layout = transformer::parse_layout(options.layout);
  if (world.size() <= layout.ranks) {
    throw std::invalid_argument("rollout: \"" + options.layout + "\" trains on " +
                                std::to_string(layout.ranks) + " ranks, and none of the " +
                                std::to_string(world.size()) + " is left to answer");
  }
  const bool trains = world.rank() < layout.ranks;
  if (!options.save.empty()) {
    std::filesystem::create_directories(options.save);
  }
  unisono::Communicator side = world.split(trains ? 0 : 1, world.rank());
  rollout::HandOver hand_over(world, config, layout);
  if (trains) {
    if (world.rank() == 0) {
      introduce(hand_over, options, world.size(), layout);
    }
    train(hand_over, side, options, config, layout);
  } else {
    rollout::serve(hand_over, side, rollout::engine_shape(config), tokens, options.save);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words.front() == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    return run(parse_options(words));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
