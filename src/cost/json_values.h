// Reads values that several documents of this directory share, with their positions.
#pragma once

#include <string>

#include "base/json.h"
#include "base/words.h"
#include "schedule/schedule.h"
#include "unisono/error.hpp"

namespace unisono::cost {

// Rethrows an error of another component as a problem of this node.
[[noreturn]] inline void refuse(const JsonNode& node, const Error& error) {
  node.fail(std::string(error.summary()));
}

inline int read_ranks(const JsonNode& node) {
  constexpr std::int64_t kMostRanks = 1'000'000'000;
  return static_cast<int>(node.whole(1, kMostRanks));
}

inline double read_bytes(const JsonNode& node, double most = 1e18) {
  return node.number(0, most);
}

inline Collective read_collective(const JsonNode& node) {
  const auto collective = parse_collective(node.text());
  if (!collective) {
    node.fail(in_quotes(node.text()) + " is not a collective");
  }
  return *collective;
}

}  // namespace unisono::cost
