// The blocks of a call in a rank's buffers, and what may be wrong with a call.
#pragma once

#include <cstddef>

#include "device/image.h"
#include "unisono/call.hpp"

namespace unisono::device {

// Errors: usage. `me` of `ranks`.
void check_call(const Call& call, int me, int ranks);

// Bytes that a rank's buffers have from their beginning to the last one that is used.
struct Reach {
  std::size_t input = 0;
  std::size_t output = 0;
};
Reach reach_of(const Call& call, int me, int ranks);

// Launch::sent and received of a v-form.
void put_blocks(const Call& call, int me, int ranks, Launch& launch);

}  // namespace unisono::device
