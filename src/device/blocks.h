// Validates calls, and locates a call's blocks in a rank's buffers.
#pragma once

#include "device/image.h"
#include "engine/layout.h"
#include "unisono/call.hpp"

namespace unisono::device {

// Validates the call of rank `me`. Errors: usage.
void check_call(const Call& call, int me, int ranks);

// Returns the bytes that a rank reads and writes. REQUIRES: check_call() accepts the lists.
engine::Extent extent_of(const Call& call, int me, int ranks);

// Sets Launch::sent and Launch::received for a v-form.
void put_blocks(const Call& call, int me, int ranks, Launch& launch);

}  // namespace unisono::device
