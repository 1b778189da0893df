// Pipelines as text: the CSV that torch.distributed.pipelining writes and reads. A line is a rank,
// and a cell is an action: "0F0,0F1,0SEND_F0,(1F4;1B0)OVERLAP_F_B". Empty cells mark idle ticks of
// a clock that the file does not have; they are skipped. A line without actions is a rank without
// stages, as in PyTorch.
//
// The file does not contain
//   - the rank of a stage: it is the rank of the stage's computations,
//   - costs: all are 1,
//   - chains: a pipeline with two chains cannot be written.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "pipeline/pipeline.h"

namespace unisono::pipeline {

// Parses one line of the CSV. The position of a failure is "cell N", counted from 1.
Parsed<std::vector<Action>> parse_actions(std::string_view line);
std::string actions_text(const std::vector<Action>& actions);

// The result has passed check(). The position of a failure is "line N", or "byte N" if the text is
// too long.
Parsed<Pipeline> parse_csv(std::string_view text);
std::string to_csv(const Pipeline& pipeline);  // REQUIRES: one chain

}  // namespace unisono::pipeline
