#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <unisono/parallel/mesh.hpp>

namespace llm {

const char* const kUsage =
    R"(usage: llm --model FILE.gguf|FOLDER|random [--prompt TEXT] [options]
       unisono run -n N -- llm --model FILE.gguf --layout tp=N --prompt TEXT
       llm --model FOLDER --embed TEXT [--embed TEXT ...] [options]

Answers a question with a model of the Llama family or Gemma 3, or computes the vectors of texts
with an encoder of BERT's kind. The model is distributed over the ranks.

  --model FILE      weights and tokenizer: a GGUF file, or a folder with config.json,
                    safetensors and tokenizer.json; "random": a small random model
  --layout TEXT     axes pp, cp, ep, tp, such as "pp=2,tp=2"; default: tp over all ranks
  --precision P     type of the weights in products: f32, or bf16, in half the memory
  --same-bits       logits with the same bits under every layout, which --save and --compare
                    then compare; slower, and with cp every rank keeps all keys and values
  --prompt TEXT     the question
  --embed TEXT      a text for an encoder: prints its vector; with several texts, the cosine
                    similarity of each further text with the first
  --tokens N        the most tokens of an answer; default: 64
  --raw             send the prompt as it is, without the chat template of the model
  --temperature T   draw from the 40 likeliest tokens; default: 0, always the likeliest
  --seed N          seed of the draws; default: 0
  --keep-going      if a rank dies, answer again on the remaining ranks, as tp or as pp
  --save FILE       answer ten prompts, and save the tokens; with an encoder, save the vectors
                    of the prompts, or of the texts of --embed
  --compare FILE    compute the same again, and compare with FILE; the exit status is 1 if a
                    token differs, or a vector by a cosine distance of more than 1e-5
  --show-tokens T   print the tokens of a text
)";

namespace {

// Checks that --save and --compare are not combined with each other, and fit --embed.
void must_have_one_task(const Options& options) {
  const int keeps =
      static_cast<int>(!options.save.empty()) + static_cast<int>(!options.compare.empty());
  const int tasks = std::max(keeps, static_cast<int>(!options.embed.empty())) +
                    static_cast<int>(!options.prompt.empty()) +
                    static_cast<int>(!options.tokens_of.empty());
  if (options.model.empty() || tasks != 1) {
    throw std::invalid_argument(
        "llm: give --model and one of --prompt, --embed, --save, --compare and --show-tokens");
  }
}

}  // namespace

Options parse_options(const std::vector<std::string>& words) {
  Options options;
  std::string tokens;
  std::string seed;
  std::string temperature;
  std::string precision = "f32";
  const std::map<std::string, std::string*> values = {
      {"--model", &options.model},     {"--layout", &options.layout},
      {"--precision", &precision},     {"--prompt", &options.prompt},
      {"--tokens", &tokens},           {"--save", &options.save},
      {"--compare", &options.compare}, {"--seed", &seed},
      {"--temperature", &temperature}, {"--show-tokens", &options.tokens_of}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--same-bits") {
      options.same_bits = true;
      continue;
    }
    if (words[i] == "--raw" || words[i] == "--keep-going") {
      (words[i] == "--raw" ? options.is_raw : options.keep_going) = true;
      continue;
    }
    const auto found = values.find(words[i]);
    const bool is_text = words[i] == "--embed";
    if ((found == values.end() && !is_text) || i + 1 == words.size()) {
      throw std::invalid_argument("llm: cannot use '" + words[i] + "'");
    }
    ++i;
    (is_text ? options.embed.emplace_back() : *found->second) = words[i];
  }
  const auto number = [](const char* name, const std::string& text, double least = 0) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(value >= least && value < 1e15)) {
      throw std::invalid_argument(std::string("llm: ") + name + " cannot be '" + text + "'");
    }
    return value;
  };
  if (precision != "f32" && precision != "bf16") {
    throw std::invalid_argument("llm: --precision must be f32 or bf16, not '" + precision + "'");
  }
  if (options.same_bits && precision != "f32") {
    throw std::invalid_argument("llm: --same-bits has products of f32 only, not of " + precision);
  }
  options.precision = options.same_bits     ? Precision::f32_in_order
                      : precision == "bf16" ? Precision::bf16
                                            : Precision::f32;
  if (!tokens.empty()) {
    options.tokens = static_cast<std::size_t>(number("--tokens", tokens, 1));
  }
  options.sampling = {.temperature = number("--temperature", temperature),
                      .seed = static_cast<std::uint64_t>(number("--seed", seed))};
  must_have_one_task(options);
  return options;
}

std::string mesh_text(const std::string& layout, int ranks) {
  const auto shape = unisono::parallel::MeshShape::parse(
      layout.empty() ? "tp=" + std::to_string(ranks) : layout, ranks);
  std::map<std::string, int> sizes;
  for (const auto& axis : shape.axes()) {
    sizes[axis.name] = axis.size;
  }
  std::string text;
  for (const char* name : {"pp", "cp", "ep", "tp"}) {
    const auto found = sizes.find(name);
    text += (text.empty() ? "" : ",") + std::string(name) + "=" +
            std::to_string(found == sizes.end() ? 1 : found->second);
    sizes.erase(name);
  }
  if (!sizes.empty() || !shape.folded().empty()) {
    throw std::invalid_argument("llm: layout '" + layout + "' has axes besides pp, cp, ep, tp");
  }
  return text;
}

}  // namespace llm
