// The injected faults: an emulated link's effects on the bytes that pass it, and the times at which
// ranks are hit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"

namespace unisono::chaos {

struct Options {
  std::int64_t delay_us = 0;   // each way
  std::int64_t jitter_us = 0;  // up to so much more, drawn for each packet; order is kept
  double loss = 0;             // of packets: each costs the wait for its second sending
  double bytes_per_s = 0;      // 0: as fast as it goes
  double corrupt = 0;          // of packets: one bit is another
  std::uint64_t seed = 1;      // of all that is drawn
  // Returns true if bytes pass it unchanged and without delay.
  bool is_plain() const {
    return delay_us == 0 && jitter_us == 0 && loss == 0 && bytes_per_s == 0 && corrupt == 0;
  }
};

// One rank, once.
struct FaultSpec {
  enum class Kind : std::uint8_t {
    kill,   // SIGKILL
    stop,   // SIGSTOP, and SIGCONT if it is for some time
    reset,  // its connections are reset
  };
  static constexpr int kAny = -1;
  Kind kind = Kind::kill;
  int rank = kAny;           // kAny: drawn
  std::int64_t at_ms = -1;   // after the start of the job; -1: drawn
  std::int64_t for_ms = -1;  // of a stop; -1: for ever
};

struct Plan {
  Options link;
  std::vector<FaultSpec> strikes;
  bool has_seed = false;
  bool needs_relay() const;
};

// "delay=5ms,jitter=1ms,loss=1%,rate=100Mbit,corrupt=0.1%,reset=1@2s,kill=random,stop=2@1s+500ms,
// seed=7", any of them; reset, kill and stop also more than once.
Parsed<Plan> parse(std::string_view text);
// The same plan with nothing of its strikes left to chance: ranks, and times in the first five
// seconds.
Plan drawn(Plan plan, int ranks);
// Returns the text that parse() reads; it always contains the seed.
std::string to_text(const Plan& plan);

}  // namespace unisono::chaos
