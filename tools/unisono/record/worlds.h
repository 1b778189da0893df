// The worlds of a run, numbered the same for all of its ranks.
#pragma once

#include <vector>

#include "record/segments.h"

namespace unisono::cli {

// By record: how many worlds there were before. A job counts its own; programs that a rank runs one
// after the other, and a program that connects again, each begin at 0: theirs are behind all of
// those before. Records of one rank are in the order in which they were made.
std::vector<int> worlds_of(const std::vector<RankRecord>& records);

}  // namespace unisono::cli
