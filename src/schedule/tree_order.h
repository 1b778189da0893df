// Checks whether a schedule sums over the fixed tree of leaves, so that its result has the same
// bits as that of every other schedule that does, also one for another number of ranks.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "schedule/finding.h"
#include "schedule/schedule.h"

namespace unisono {

// The name of the algorithms that sum over the tree. Every addition of theirs rounds to the data
// type, so that a partial sum has the same bits whether it stays on its rank or is sent.
inline constexpr std::string_view kTreeOrder = "tree_order";

// The leaves are numbered by rank, `leaves[r]` of them on rank r, whose input is their sum. Every
// result is tree(0, L) over all L leaves, with tree(a, b) = tree(a, m) + tree(m, b) and m - a the
// largest power of two below b - a. The terms of an addition may be exchanged, as they commute.
// Every expression is compared as a whole. Returns those that are another sum, as Mistake::order;
// nothing where nothing is summed.
// REQUIRES: the structure of the schedule is right, and every rank has a leaf.
std::vector<Finding> verify_tree_order(const Schedule& schedule, std::span<const int> leaves);
bool sums_in_tree_order(const Schedule& schedule, std::span<const int> leaves);
// With one leaf on each rank.
bool sums_in_tree_order(const Schedule& schedule);

}  // namespace unisono
