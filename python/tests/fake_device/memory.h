// Memory of the fake device: blocks are used again as soon as they are freed, and are overwritten
// before, so that an operation that still needs one is found out.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace fake_device {

c10::Allocator* allocator();
// The block is not used again before what the stream has now is done.
void note_use(const void* memory, c10::Stream stream);

}  // namespace fake_device
