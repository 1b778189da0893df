// Who may go on after a failure. Ranks that cannot hear of each other must not go on as two worlds,
// each of which takes the other for dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace unisono::comm {

enum class Standing : std::uint8_t {
  absent,   // it has not come: it may be dead, stopped, or out of reach
  present,  // it has come
  gone,     // it is proved to be no more
};

// Among all groups of ranks that know nothing of each other, at most one has it: more than half of
// those that are not proved to be gone, or just half with the lowest of them.
bool has_quorum(std::span<const Standing> ranks);
std::vector<int> with_standing(std::span<const Standing> ranks, Standing standing);
// What a rank is told that may not go on: "1 rank came to go on, without ranks 2, 3, which ...".
std::string no_quorum(std::span<const Standing> ranks);
// The others went on without this rank.
[[noreturn]] void throw_evicted();

}  // namespace unisono::comm
