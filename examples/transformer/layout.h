// The distribution of the model over ranks, as one line of text:
//
//   dp=2,cp=2,tp=2 zero=3 sp vocab striped
//
// Axes that may be named, the slowest first: pp (a pipeline, with a schedule), rep (replicas of
// sharded states, HSDP), dp, cp (ring, or all_gather), uly (Ulysses), tp. Words: zero=0..3 (0
// unless given), sp, vocab, all_gather, contiguous, striped (zigzag unless given). A pipeline
// has the name of a schedule (`unisono pipeline list`), m=8 (microbatches, 8 unless given), v=2
// (stages on a rank, where the schedule leaves the choice).
#pragma once

#include <string>
#include <unisono/parallel/context_parallel.hpp>
#include <vector>

namespace transformer {

struct Layout {
  std::string text = {};
  std::string mesh = {};  // with all axes
  int ranks = 1;
  int stage = 0;              // of ZeRO
  std::string schedule = {};  // empty: no pipeline
  int microbatches = 8;
  int chunks = 0;
  bool sequence = false;
  bool vocabulary = false;
  bool same_bits = false;  // of losses and weights as under every other layout
  unisono::parallel::ContextMethod method = unisono::parallel::ContextMethod::ring;
  unisono::parallel::ContextOrder order = unisono::parallel::ContextOrder::zigzag;
};

Layout parse_layout(const std::string& text);
// Returns the layouts that `make parallel` compares with one process.
std::vector<Layout> layouts_on(int ranks);

}  // namespace transformer
