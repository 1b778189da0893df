// What is wrong with a program of MSCCL.
#pragma once

#include <string>

namespace unisono::msccl {

struct Flaw {
  int gpu = -1;  // -1: no one place
  int block = -1;
  int step = -1;
  std::string text;
};

// "GPU 0, thread block 2, step 1: ...", or the text alone.
std::string to_text(const Flaw& flaw);

}  // namespace unisono::msccl
