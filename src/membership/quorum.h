// Decides which ranks may continue after a failure. Ranks that cannot communicate must not continue
// as two worlds, each of which believes the other dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace unisono::comm {

enum class RankStatus : std::uint8_t {
  absent,   // it has not come: it may be dead, stopped, or unreachable
  present,  // it has come
  gone,     // it is proved dead
};

// Among all groups of ranks without knowledge of each other, at most one has a quorum: more than
// half of the ranks not proved dead, or exactly half including the lowest of them.
bool has_quorum(std::span<const RankStatus> ranks);
std::vector<int> with_status(std::span<const RankStatus> ranks, RankStatus status);
// Returns the error text for a rank that may not continue: "1 rank came to go on, without ranks 2,
// 3, which ...".
std::string no_quorum(std::span<const RankStatus> ranks);
// The others continued without this rank.
[[noreturn]] void throw_evicted();

}  // namespace unisono::comm
