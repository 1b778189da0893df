// Lists the messages of a schedule one by one, with the messages that each of them needs.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace unisono::network_model {

inline constexpr std::int64_t kMostMessages = 50'000'000;

// All data that one rank sends another in a step; with segments, one segment of it.
struct UnrolledMessage {
  int from = 0;
  int to = 0;
  double chunks = 0;  // or elements (cost/cost.h, chunk_bytes); as sent, encoded or not
  double reduced = 0;
  double coded = 0;                       // data to encode and data to decode, counted like
                                          // `chunks`
  std::vector<std::uint32_t> needs = {};  // numbers of earlier messages
};

// Throws Error(usage) above kMostMessages.
std::vector<UnrolledMessage> unroll(const Schedule& schedule, int segments);

}  // namespace unisono::network_model
