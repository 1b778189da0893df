#include "diagnose/rank_label.h"

#include <algorithm>
#include <cstring>

namespace unisono::comm {

void write_label(RankLabel& label, std::string_view text) noexcept {
  char padded[kLabelBytes] = {};
  std::memcpy(padded, text.data(), std::min(text.size(), kLabelBytes - 1));
  for (std::size_t i = 0; i < std::size(label.words); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, padded + i * sizeof(word), sizeof(word));
    label.words[i].store(word, std::memory_order_relaxed);
  }
}

std::string read_label(const RankLabel& label) {
  char text[kLabelBytes] = {};
  for (std::size_t i = 0; i < std::size(label.words); ++i) {
    const std::uint64_t word = label.words[i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof(word), &word, sizeof(word));
  }
  return {text, strnlen(text, sizeof(text))};
}

}  // namespace unisono::comm
