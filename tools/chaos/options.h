// What an emulated link does to the bytes that cross it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/parsed.h"

namespace unisono::chaos {

struct Options {
  std::int64_t delay_us = 0;   // each way
  std::int64_t jitter_us = 0;  // up to so much more, drawn for each packet; order is kept
  double loss = 0;             // of packets: each costs the wait for its second sending
  double bytes_per_s = 0;      // 0: as fast as it goes
  std::int64_t kill_ms = -1;   // the connection is reset after this time
  std::uint64_t seed = 1;      // of all that is drawn
};

// "delay=5ms,jitter=1ms,loss=1%,rate=100Mbit,kill=30s,seed=7", any of them.
Parsed<Options> parse(std::string_view text);

}  // namespace unisono::chaos
