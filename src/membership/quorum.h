// Decides which ranks may continue after a failure. If the network separates ranks, they must not
// continue as two worlds, each of which believes that the other is dead.
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

// Returns true if these ranks have a quorum: they are more than half of the ranks that are not
// proved dead, or exactly half including the lowest of those ranks. If several groups do not know
// of each other, at most one of them has a quorum.
bool has_quorum(std::span<const RankStatus> ranks);
std::vector<int> with_status(std::span<const RankStatus> ranks, RankStatus status);
// Returns the error text for a rank that may not continue: "1 rank came to go on, without ranks 2,
// 3, which ...".
std::string no_quorum(std::span<const RankStatus> ranks);
// Throws the error of a rank without which the others have continued.
[[noreturn]] void throw_evicted();

}  // namespace unisono::comm
