// What is played of an operation: its messages with their costs, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unisono::model {

// An actor is one stream of one rank.
struct PlayMessage {
  int from = 0;  // actors; from == to: local, through no port but that of reductions
  int to = 0;
  int path = 0;
  double overhead_us = 0;
  double latency_us = 0;  // of the links
  double bytes = 0;
  double reduce_us = 0;
};

// One step, repeated. Either `needs` says which earlier messages of the block each message needs,
// or the senders wait for all that they received before, or for nothing.
struct PlayBlock {
  int phase = 0;
  std::int64_t repeats = 1;
  bool waits = false;
  bool has_needs = false;
  std::vector<PlayMessage> messages = {};
  std::vector<std::uint32_t> first_need = {};  // per message, and one more
  std::vector<std::uint32_t> needs = {};

  std::span<const std::uint32_t> needs_of(std::size_t message) const {
    return std::span(needs).subspan(first_need[message],
                                    first_need[message + 1] - first_need[message]);
  }
};

}  // namespace unisono::model
