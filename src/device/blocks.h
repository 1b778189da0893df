// The blocks of a call in a rank's buffers, and the validation of a call.
#pragma once

#include "device/image.h"
#include "engine/layout.h"
#include "unisono/call.hpp"

namespace unisono::device {

// Errors: usage. `me` of `ranks`.
void check_call(const Call& call, int me, int ranks);

// Returns what a rank reads and writes. REQUIRES: lists that check_call() accepts.
engine::Extent extent_of(const Call& call, int me, int ranks);

// Sets Launch::sent and received of a v-form.
void put_blocks(const Call& call, int me, int ranks, Launch& launch);

}  // namespace unisono::device
