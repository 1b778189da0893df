#include "rollout/engine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <unisono/parallel/checkpoint.hpp>
#include <unisono/parallel/mesh.hpp>
#include <utility>
#include <vector>

#include "llm/answers.h"

namespace rollout {
namespace {

namespace up = unisono::parallel;
using Answers = std::vector<std::vector<llm::Said>>;

constexpr const char* kPrefix = "step-";

// Answers all prompts. Tokens are bytes.
Answers answer_all(llm::Model& model, std::size_t tokens) {
  Answers answers;
  for (const char* text : llm::prompts()) {
    std::vector<std::int32_t> prompt;
    for (const char* byte = text; *byte != '\0'; ++byte) {
      prompt.push_back(static_cast<unsigned char>(*byte));
    }
    answers.push_back(llm::answer(model, prompt, tokens, {}, [](std::int32_t) { return true; }));
  }
  return answers;
}

Answers answer_with(unisono::Communicator& ranks, const HandedWeights& weights,
                    std::size_t tokens) {
  up::Mesh mesh = up::Mesh::create(ranks, "pp=1,cp=1,ep=1,tp=" + std::to_string(ranks.size()));
  llm::Model model(mesh, weights, llm::Precision::f32);
  return answer_all(model, tokens);
}

// Returns the share of tokens that follow from the previous token, as in most of the trainer's
// data.
double share_right(const Answers& answers, std::size_t vocabulary) {
  std::size_t right = 0;
  std::size_t all = 0;
  for (const auto& said : answers) {
    for (std::size_t i = 1; i < said.size(); ++i, ++all) {
      const auto last = static_cast<std::size_t>(said[i - 1].token);
      right += static_cast<std::size_t>(said[i].token) == transformer::next_token(last, vocabulary)
                   ? 1U
                   : 0U;
    }
  }
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

// Loads the weights of a checkpoint under the engine's names.
HandedWeights load(const std::filesystem::path& folder, const llm::Shape& shape) {
  std::vector<up::NamedTensor> sources;
  for (const up::SavedTensor& saved : up::list_checkpoint(folder)) {
    sources.push_back({.name = saved.name, .dtype = saved.dtype, .shape = saved.shape});
  }
  HandedWeights weights(shape);
  std::vector<up::Saved> wanted;
  for (const up::NamedTarget& target : up::NameMap::parse(kNames).apply(sources)) {
    std::vector<up::Range> whole;
    for (const std::size_t count : target.tensor.shape) {
      whole.push_back({.first = 0, .count = count});
    }
    wanted.push_back({.name = sources[target.parts.front().source].name,
                      .shape = target.tensor.shape,
                      .part = weights.add(target.tensor.name, whole)});
  }
  up::load_checkpoint(folder, wanted);
  return weights;
}

std::vector<std::int64_t> steps_in(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    std::int64_t step = 0;
    if (!entry.is_directory() || !name.starts_with(kPrefix)) {
      continue;
    }
    const char* const end = name.data() + name.size();
    const auto [read, error] =
        std::from_chars(name.data() + std::string_view(kPrefix).size(), end, step);
    if (error == std::errc{} && read == end) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step) {
  return folder / (kPrefix + std::to_string(step));
}

std::filesystem::path answers_of(const std::filesystem::path& folder, std::int64_t step) {
  return folder / (kPrefix + std::to_string(step) + ".answers");
}

void serve(HandOver& hand_over, unisono::Communicator& engine, const llm::Shape& shape,
           std::size_t tokens, const std::string& folder) {
  for (bool is_last = false; !is_last;) {
    HandedWeights weights(shape);
    const News news = hand_over.take(weights);
    is_last = news.is_last;
    const Answers answers = answer_with(engine, weights, tokens);
    if (engine.rank() != 0) {
      continue;
    }
    if (!folder.empty()) {
      llm::save_answers(answers_of(folder, news.step), answers);
    }
    std::printf("engine   step %3lld: %.0f %% of the answers' tokens follow the rule\n",
                static_cast<long long>(news.step), 100 * share_right(answers, shape.vocabulary));
    std::fflush(stdout);
  }
}

bool compare_with_checkpoints(unisono::Communicator& alone, const llm::Shape& shape,
                              std::size_t tokens, const std::filesystem::path& folder) {
  const std::vector<std::int64_t> steps = steps_in(folder);
  std::size_t all = 0;
  std::size_t wrong = 0;
  for (const std::int64_t step : steps) {
    const Answers saved = llm::load_answers(answers_of(folder, step));
    const Answers own = answer_with(alone, load(checkpoint_of(folder, step), shape), tokens);
    std::size_t different = saved.size() == own.size() ? 0 : own.size();
    std::size_t ties = 0;
    for (std::size_t i = 0; different == 0 && i < own.size(); ++i) {
      const llm::Comparison::Kind kind = llm::compare(saved[i], own[i], false).kind;
      ties += kind == llm::Comparison::Kind::tie ? 1U : 0U;
      different += kind == llm::Comparison::Kind::different ? 1U : 0U;
    }
    std::printf("alone    step %3lld: ", static_cast<long long>(step));
    if (different > 0) {
      std::printf("OTHER TOKENS in %zu of %zu answers\n", different, own.size());
    } else if (ties > 0) {
      std::printf("same tokens in %zu answers, up to a tie within rounding in %zu\n", own.size(),
                  ties);
    } else {
      std::printf("same tokens in %zu answers\n", own.size());
    }
    all += own.size();
    wrong += different;
  }
  if (steps.empty()) {
    std::printf("alone    no checkpoints in %s\n", folder.c_str());
  } else {
    std::printf("alone    %zu of the engine's %zu answers are those of one process\n", all - wrong,
                all);
  }
  return !steps.empty() && wrong == 0;
}

}  // namespace rollout
