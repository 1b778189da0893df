// Pipelines as text: the CSV that torch.distributed.pipelining writes and reads. A line is a rank,
// a cell is an action: "0F0,0F1,0SEND_F0,(1F4;1B0)OVERLAP_F_B". Empty cells say when a rank is idle
// on a clock that the file does not have; they are skipped. A line without actions is a rank
// without stages, as PyTorch reads it.
//
// The file does not say where a stage lies (where its computations are), what it costs (1), nor
// that there are two chains: a pipeline with two chains cannot be written.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "pipeline/pipeline.h"

namespace unisono::pipeline {

// One line of the CSV. A failure's position is "cell N", counted from 1.
Parsed<std::vector<Action>> parse_actions(std::string_view line);
std::string actions_text(const std::vector<Action>& actions);

// What is returned has passed check(). A failure's position is "line N", or "byte N" of a text that
// is too long.
Parsed<Pipeline> parse_csv(std::string_view text);
std::string to_csv(const Pipeline& pipeline);  // REQUIRES: one chain

}  // namespace unisono::pipeline
