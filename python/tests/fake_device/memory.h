// Memory of the fake device. Blocks are reused as soon as they are freed, and overwritten before,
// so that a test fails if an operation still needs a freed block.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace fake_device {

c10::Allocator* allocator();
// The block is not reused before the present work of the stream is done.
void note_use(const void* memory, c10::Stream stream);

}  // namespace fake_device
