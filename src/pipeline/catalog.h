// The pipeline schedules by name. To add one, add a file here and a line in catalog.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

struct PipelineSize {
  int ranks = 1;
  int chunks = 1;  // stages per rank (v)
  int microbatches = 1;
};

// The times of one microbatch on one rank, over all its stages.
struct Times {
  double forward = 1;
  double input = 1;
  double weight = 1;
};

struct Entry {
  std::string_view name;
  std::string_view summary;
  std::string_view source;  // paper and year
  int chunks = 1;           // 0: any number
  // Returns why no schedule of that shape exists; empty if one does.
  std::string (*refuse)(PipelineSize shape) = [](PipelineSize) { return std::string{}; };
  // Returns stages, chains and computations; sends and receives follow from them.
  Pipeline (*build)(PipelineSize shape) = nullptr;
  // Returns the idle time of the rank that is idle longest, with free transfers; nothing if there
  // is no formula.
  std::optional<double> (*bubble)(PipelineSize shape, Times times) = nullptr;
  // The bubble counts from a rank's own first action to its last, because optimizer steps overlap.
  bool is_bubble_of_rank = false;
  // Returns the most microbatches of a stage that a rank holds between F and W; an upper bound if
  // `is_peak_bound`.
  int (*peak)(PipelineSize shape, int rank) = nullptr;
  bool is_peak_bound = false;
};

std::span<const Entry* const> catalog();
const Entry* find_entry(std::string_view name);

// Returns why the entry has no schedule of that shape; empty if it has one.
std::string refusal(const Entry& entry, PipelineSize shape);

// Returns the schedule with sends and receives; F, I and W of each stage take 1 / chunks.
// REQUIRES: refusal() is empty.
Pipeline build(const Entry& entry, PipelineSize shape);

extern const Entry naive;
extern const Entry gpipe;
extern const Entry one_forward_one_backward;
extern const Entry interleaved;
extern const Entry zb_h1;
extern const Entry zb_h2;
extern const Entry zbv;
extern const Entry v_half;
extern const Entry v_min;
extern const Entry dual_pipe;
extern const Entry dual_pipe_v;

}  // namespace unisono::pipeline
