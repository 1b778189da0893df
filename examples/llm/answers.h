// Answers questions, and compares the answers with answers under another layout.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model.h"

namespace llm {

struct Sampling {
  double temperature = 0;  // 0: the likeliest token
  std::uint64_t seed = 0;
};

struct Said {
  std::int32_t token = 0;
  float margin = 0;        // difference between its logit and the second largest logit
  std::uint64_t bits = 0;  // hash of the logits that chose it, if computed in order
};

// Returns the tokens after a prompt: at most `most`, or until `goes_on` returns false.
std::vector<Said> answer(Model& model, std::span<const std::int32_t> prompt, std::size_t most,
                         const Sampling& sampling,
                         const std::function<bool(std::int32_t)>& goes_on);

// Returns the ten prompts used to compare layouts.
std::span<const char* const> prompts();

// Save and load answers as one line of text per prompt: "token:margin token:margin", each followed
// by ":" and a hash of its logits if they were computed in order. Errors: std::runtime_error.
void save_answers(const std::string& path, const std::vector<std::vector<Said>>& answers);
std::vector<std::vector<Said>> load_answers(const std::string& path);

// Compares a prompt's answer with the saved answer. A difference counts as a tie if the saved
// margin is within the rounding error of sums in another order; later tokens are not compared. With
// `by_bits`, all logits must have the same bits.
struct Comparison {
  enum class Kind : unsigned char { same, tie, different } kind = Kind::same;
  std::size_t place = 0;
};
inline constexpr float kTieMargin = 1e-3F;
Comparison compare(std::span<const Said> said, std::span<const Said> saved, bool by_bits);

}  // namespace llm
