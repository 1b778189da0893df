// The kernels as nvcc made them, within this library; nullptr: it was built without.
#pragma once

namespace unisono::device {

const void* kernel_image();

}  // namespace unisono::device
