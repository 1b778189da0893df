#include "answers.h"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

namespace llm {
namespace {

namespace up = unisono::parallel;

constexpr std::size_t kCandidates = 40;  // a token is drawn from these

constexpr const char* kPrompts[] = {
    "What is the capital of France?",
    "Name three colours of the rainbow.",
    "The quick brown fox",
    "Write one sentence about the sea.",
    "def fibonacci(n):",
    "How many legs do 12 spiders have?",
    "Explain why the sky is blue, in two sentences.",
    "Translate \"good morning\" into Spanish.",
    "List the planets of the solar system in order from the sun, and say something about each.",
    "Once upon a time there was a small ship that could not swim, and"};

// Draws one of the candidates by softmax and a number in [0, 1).
std::int32_t draw(std::span<const up::Candidate> candidates, double temperature, double number) {
  double total = 0;
  std::vector<double> weights;
  for (const up::Candidate& candidate : candidates) {
    weights.push_back(
        std::exp(static_cast<double>(candidate.logit - candidates.front().logit) / temperature));
    total += weights.back();
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    number -= weights[i] / total;
    if (number < 0) {
      return candidates[i].token;
    }
  }
  return candidates.back().token;
}

}  // namespace

std::vector<Said> answer(Model& model, std::span<const std::int32_t> prompt, std::size_t most,
                         const Sampling& sampling,
                         const std::function<bool(std::int32_t)>& goes_on) {
  std::mt19937_64 random(sampling.seed);
  model.clear();
  const std::size_t count = sampling.temperature > 0 ? kCandidates : 2;
  auto next = most == 0 ? std::vector<up::Candidate>{} : model.append(prompt, count);
  std::vector<Said> said;
  while (said.size() < most) {
    const double number = static_cast<double>(random() >> 11) * 0x1p-53;
    const std::int32_t token =
        sampling.temperature > 0 ? draw(next, sampling.temperature, number) : next.front().token;
    said.push_back({.token = token,
                    .margin = next.size() < 2 ? 0 : next[0].logit - next[1].logit,
                    .bits = model.logit_bits()});
    if (!goes_on(token) || said.size() == most) {
      break;
    }
    next = model.append(std::span(&token, 1), count);
  }
  return said;
}

std::span<const char* const> prompts() {
  return kPrompts;
}

void save_answers(const std::string& path, const std::vector<std::vector<Said>>& answers) {
  std::ofstream out(path);
  for (const auto& said : answers) {
    for (const Said& one : said) {
      out << one.token << ':' << one.margin;
      if (one.bits != 0) {
        out << ':' << std::hex << one.bits << std::dec;
      }
      out << ' ';
    }
    out << '\n';
  }
  if (!out.flush()) {
    throw std::runtime_error(path + " cannot be written");
  }
}

std::vector<std::vector<Said>> load_answers(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    throw std::runtime_error(path + " cannot be read; create it with --save");
  }
  std::vector<std::vector<Said>> answers;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<Said>& said = answers.emplace_back();
    bool is_answer = true;
    for (std::string word; is_answer && words >> word;) {
      std::istringstream parts(word);
      char colon = 0;
      Said& one = said.emplace_back();
      parts >> one.token >> colon >> one.margin;
      if (!parts.eof()) {
        parts >> colon >> std::hex >> one.bits;
      }
      is_answer = !parts.fail() && parts.eof();
    }
    if (!is_answer) {
      throw std::runtime_error(path + " has a line that is not an answer");
    }
  }
  return answers;
}

Comparison compare(std::span<const Said> said, std::span<const Said> saved, bool by_bits) {
  std::size_t i = 0;
  while (i < said.size() && i < saved.size() && said[i].token == saved[i].token &&
         (!by_bits || said[i].bits == saved[i].bits)) {
    ++i;
  }
  if (i == said.size() && i == saved.size()) {
    return {};
  }
  const bool is_tie =
      !by_bits && i < saved.size() && i < said.size() && saved[i].margin <= kTieMargin;
  return {.kind = is_tie ? Comparison::Kind::tie : Comparison::Kind::different, .place = i};
}

}  // namespace llm
