// Answers a question with a language model distributed over ranks. See kUsage.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <unisono/unisono.hpp>

#include "encoder_weights.h"
#include "folder.h"
#include "model.h"
#include "options.h"
#include "tokenizer.h"
#include "vectors.h"

namespace {

namespace up = unisono::parallel;

// A file or folder, and its weights and tokenizer. Without a tokenizer, tokens are bytes.
struct Source {
  std::optional<llm::Gguf> file;
  std::optional<llm::Tokenizer> tokenizer;
  std::unique_ptr<llm::Weights> weights;

  explicit Source(const std::string& name) {
    if (name == "random") {
      weights = llm::random_weights(1);
    } else if (std::filesystem::is_directory(name)) {
      weights = llm::folder_weights(name);
      if (auto vocabulary = llm::folder_vocabulary(name)) {
        llm::must_fit(*vocabulary, weights->shape().vocabulary, name);
        tokenizer.emplace(std::move(*vocabulary));
      }
    } else {
      file.emplace(name);
      weights = llm::file_weights(*file);
      llm::Vocabulary vocabulary = llm::vocabulary_of(*file);
      llm::must_fit(vocabulary, weights->shape().vocabulary, name);
      tokenizer.emplace(std::move(vocabulary));
    }
  }
  std::vector<std::int32_t> encode(const std::string& text, bool is_raw) const {
    if (tokenizer) {
      return tokenizer->encode(is_raw ? text : tokenizer->chat(text));
    }
    std::vector<std::int32_t> tokens;
    for (const char byte : text) {
      tokens.push_back(static_cast<unsigned char>(byte));
    }
    return tokens;
  }
  std::string decode(std::int32_t token) const {
    return tokenizer ? tokenizer->decode(token) : " " + std::to_string(token);
  }
  bool ends_answer(std::int32_t token) const { return tokenizer && tokenizer->ends_answer(token); }
};

// Completes a line with the share of communication time.
void say_shares(const llm::Model& model, const llm::Times& times) {
  if (times.total > 0) {
    std::fprintf(stderr, "; %.1f %% of it in communication",
                 100 * times.communication / times.total);
    if (!model.has_experts()) {
      std::fprintf(stderr, ": %.1f %% moving, %.1f %% waiting for other ranks",
                   100 * (times.communication - times.waiting) / times.total,
                   100 * times.waiting / times.total);
    }
  }
  std::fprintf(stderr, "\n");
}

void say(const llm::Options& options, const Source& source, llm::Model& model, bool is_speaker) {
  const auto prompt = source.encode(options.prompt, options.is_raw);
  llm::Times before;
  std::size_t steps = 0;
  const auto said =
      llm::answer(model, prompt, options.tokens, options.sampling, [&](std::int32_t token) {
        before = steps++ == 0 ? model.times() : before;
        if (source.ends_answer(token)) {
          return false;
        }
        if (is_speaker) {
          std::fputs(source.decode(token).c_str(), stdout);
          std::fflush(stdout);
        }
        return true;
      });
  if (!is_speaker) {
    return;
  }
  const llm::Times answer = {
      .total = model.times().total - before.total,
      .communication = model.times().communication - before.communication,
      .waiting = model.times().waiting - before.waiting,
  };
  std::printf("\n");
  std::fprintf(stderr, "# prompt: %zu tokens, %.1f tokens/s", prompt.size(),
               static_cast<double>(prompt.size()) / before.total);
  say_shares(model, before);
  if (said.size() > 1 && answer.total > 0) {
    std::fprintf(stderr, "# answer: %zu tokens, %.1f tokens/s", said.size(),
                 static_cast<double>(said.size() - 1) / answer.total);
    say_shares(model, answer);
  }
  std::fprintf(stderr, "# weights here: %.1f MiB\n",
               static_cast<double>(model.weight_bytes()) / 0x1p20);
}

// Reads a prompt and its answer at once. The last logits must have the same bits as token by token.
void must_be_same_at_once(llm::Model& model, std::vector<std::int32_t> tokens,
                          const std::vector<llm::Said>& said) {
  for (std::size_t i = 0; i + 1 < said.size(); ++i) {
    tokens.push_back(said[i].token);
  }
  model.clear();
  model.append(tokens, 1);
  if (!said.empty() && model.logit_bits() != said.back().bits) {
    throw std::runtime_error("llm: after " + std::to_string(tokens.size()) +
                             " tokens, logits have other bits at once than token by token");
  }
}

std::vector<std::vector<llm::Said>> answer_all(const llm::Options& options, const Source& source,
                                               llm::Model& model) {
  std::vector<std::vector<llm::Said>> answers;
  for (const char* prompt : llm::prompts()) {
    const auto tokens = source.encode(prompt, options.is_raw);
    answers.push_back(llm::answer(model, tokens, options.tokens, options.sampling,
                                  [](std::int32_t) { return true; }));
    if (options.same_bits) {
      must_be_same_at_once(model, tokens, answers.back());
    }
  }
  return answers;
}

std::vector<std::vector<llm::Said>> load_comparable(const llm::Options& options) {
  auto saved = llm::load_answers(options.compare);
  if (saved.size() != llm::prompts().size()) {
    throw std::runtime_error(options.compare + " has another number of prompts");
  }
  const auto has_no_bits = [](const llm::Said& one) { return one.bits == 0; };
  if (options.same_bits && std::ranges::any_of(saved | std::views::join, has_no_bits)) {
    throw std::runtime_error(options.compare + " was saved without --same-bits");
  }
  return saved;
}

bool compare(const llm::Options& options, const std::vector<std::vector<llm::Said>>& answers,
             const std::vector<std::vector<llm::Said>>& saved, const std::string& layout,
             bool is_speaker) {
  bool is_right = true;
  std::size_t ties = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const llm::Comparison found = llm::compare(answers[i], saved[i], options.same_bits);
    if (found.kind == llm::Comparison::Kind::same) {
      continue;
    }
    const bool is_tie = found.kind == llm::Comparison::Kind::tie;
    is_right = is_right && is_tie;
    ties += is_tie ? 1 : 0;
    if (is_speaker) {
      std::printf("  prompt %zu: %s at token %zu\n", i + 1,
                  is_tie              ? "logits tie within rounding"
                  : options.same_bits ? "other bits"
                                      : "another answer",
                  found.place + 1);
    }
  }
  if (is_speaker) {
    std::printf("%-28s %zu prompts, %zu ties: %s\n", layout.c_str(), saved.size(), ties,
                !is_right           ? "WRONG"
                : options.same_bits ? "same bits"
                                    : "same tokens");
  }
  return is_right;
}

bool run(unisono::Communicator& world, const llm::Options& options, const std::string& layout) {
  if (llm::is_encoder(options.model)) {
    return llm::run_encoder(world, options, layout);
  }
  if (!options.embed.empty()) {
    throw std::invalid_argument("llm: " + options.model +
                                " is not an encoder, which --embed needs");
  }
  const Source source(options.model);
  up::Mesh mesh = up::Mesh::create(world, llm::mesh_text(layout, world.size()));
  llm::Model model(mesh, *source.weights, options.precision);
  const bool is_speaker = world.rank() == 0;
  if (!options.prompt.empty()) {
    say(options, source, model, is_speaker);
    return true;
  }
  if (!options.compare.empty()) {
    const auto saved = load_comparable(options);
    return compare(options, answer_all(options, source, model), saved,
                   layout.empty() ? mesh.shape().text() : layout, is_speaker);
  }
  const auto answers = answer_all(options, source, model);
  if (is_speaker) {
    llm::save_answers(options.save, answers);
  }
  return true;
}

// Returns a layout for the remaining ranks, which may outnumber the heads or layers.
std::string smaller_layout(const llm::Options& options, int ranks) {
  if (llm::is_encoder(options.model)) {
    return "tp=" + std::to_string(ranks);
  }
  const llm::Shape shape = Source(options.model).weights->shape();
  const auto n = static_cast<std::size_t>(ranks);
  return (n <= shape.heads ? "tp=" : "pp=") + std::to_string(ranks);
}

int serve(const llm::Options& options) {
  if (!options.tokens_of.empty()) {
    const auto tokens = llm::is_encoder(options.model)
                            ? llm::encoder_tokenizer(options.model).encode(options.tokens_of)
                            : Source(options.model).encode(options.tokens_of, true);
    for (const std::int32_t token : tokens) {
      std::printf("%d ", token);
    }
    std::printf("\n");
    return 0;
  }
  auto world = unisono::Communicator::connect();
  llm::set_product_threads(world.size() == 1 ? llm::processors() : 1);
  std::string layout = options.layout;
  while (true) {
    try {
      return run(world, options, layout) ? 0 : 1;
    } catch (const unisono::Error& error) {
      if (!options.keep_going || error.code() != unisono::ErrorCode::peer_lost) {
        throw;
      }
      std::fprintf(stderr, "\n# %s\n", std::string(error.summary()).c_str());
    }
    world = world.shrink();
    layout = smaller_layout(options, world.size());
    if (world.rank() == 0) {
      std::printf("\n# again, with %s\n", layout.c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty() || words.front() == "--help") {
      std::fputs(llm::kUsage, words.empty() ? stderr : stdout);
      return words.empty() ? 2 : 0;
    }
    return serve(llm::parse_options(words));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), llm::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
