// The task of an inference step.
#pragma once

#include <cstddef>

namespace unisono::step {

struct DecoderTask {
  std::size_t tokens = 1;   // tokens of this call
  std::size_t context = 0;  // tokens in the cache before this call; 0 with several tokens
  double element_bytes = 2;
  std::size_t candidates = 2;  // number of most likely tokens that all ranks get
  // The experts are copies of the dense inner part, present on all ranks (Komatsuzaki et al.,
  // 2022).
  bool is_upcycled = false;
};

}  // namespace unisono::step
