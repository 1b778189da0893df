// Checks whether a schedule sums over the fixed tree of leaves. All schedules that do so give the
// same bits, even for different numbers of ranks.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "schedule/finding.h"
#include "schedule/schedule.h"

namespace unisono {

// The name of the algorithms that sum over the tree. Each of their additions rounds to the data
// type, so that a partial sum has the same bits whether it stays on its rank or is sent.
inline constexpr std::string_view kTreeOrder = "tree_order";

// Checks that every result is tree(0, L) over all L leaves, where tree(a, b) = tree(a, m) + tree(m,
// b), and m - a is the largest power of two below b - a. The leaves are numbered by rank: rank r
// has `leaves[r]` leaves, and its input is their sum. The two terms of an addition may be
// exchanged, because addition commutes. Every expression is compared as a whole. Returns a finding
// Mistake::order for each result that is another sum; returns nothing if nothing is summed.
// REQUIRES: the structure of the schedule is correct, and every rank has a leaf.
std::vector<Finding> verify_tree_order(const Schedule& schedule, std::span<const int> leaves);
bool sums_in_tree_order(const Schedule& schedule, std::span<const int> leaves);
// As above with one leaf per rank. Returns true if there is no finding.
bool sums_in_tree_order(const Schedule& schedule);

}  // namespace unisono
