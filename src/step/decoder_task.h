// The task of an inference step.
#pragma once

#include <cstddef>

namespace unisono::step {

struct DecoderTask {
  std::size_t tokens = 1;   // of this call
  std::size_t context = 0;  // tokens in the cache before it; 0 where there are several tokens
  double element_bytes = 2;
  std::size_t candidates = 2;  // the likeliest tokens that all ranks get
  // Experts are copies of the dense inner part, which all ranks have (Komatsuzaki et al., 2022).
  bool is_upcycled = false;
};

}  // namespace unisono::step
