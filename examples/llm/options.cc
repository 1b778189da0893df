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

Answers a question with a model of the Llama family or Gemma 3, or gives the vectors of texts by
an encoder of BERT's kind, laid over ranks.

  --model FILE      weights and tokenizer: a GGUF file, or a folder with config.json,
                    safetensors and tokenizer.json; "random": a small model that is made up
  --layout TEXT     axes pp, cp, ep, tp, such as "pp=2,tp=2"; tp over all ranks unless given
  --precision P     of the weights in products: f32, or bf16, in half the memory
  --prompt TEXT     the question
  --embed TEXT      a text for an encoder: prints its vector; of several, the cosine similarity of
                    each further one with the first
  --tokens N        the most tokens of an answer; 64
  --raw             the prompt as it is, without the words that the model was trained to expect
  --temperature T   draws from the 40 likeliest tokens; 0, the likeliest, unless given
  --seed N          of the draws; 0
  --keep-going      where a rank dies, answer again on those that are left, as tp or as pp
  --save FILE       answers ten prompts, and keeps the tokens; of an encoder, the vectors of the
                    prompts, or of the texts of --embed
  --compare FILE    does it again, and compares; the exit status is 1 if a token differs, or a
                    vector by a cosine distance of more than 1e-5
  --show-tokens T   the tokens of a text
)";

namespace {

// --save and --compare go with --embed, and not with each other.
void must_have_one_task(const Options& options) {
  const int keeps =
      static_cast<int>(!options.save.empty()) + static_cast<int>(!options.compare.empty());
  const int tasks = std::max(keeps, static_cast<int>(!options.embed.empty())) +
                    static_cast<int>(!options.prompt.empty()) +
                    static_cast<int>(!options.tokens_of.empty());
  if (options.model.empty() || tasks != 1) {
    throw std::invalid_argument(
        "llm: --model and one of --prompt, --embed, --save, --compare and --show-tokens are "
        "needed");
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
    throw std::invalid_argument("llm: --precision is f32 or bf16, not '" + precision + "'");
  }
  options.precision = precision == "bf16" ? Precision::bf16 : Precision::f32;
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
