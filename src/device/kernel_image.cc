#include "device/kernel_image.h"

// The linker puts the file in as it is.
asm(".section .rodata\n.balign 64\nunisono_kernels:\n.incbin \"" UNISONO_KERNELS "\"\n.previous\n");
extern "C" const unsigned char unisono_kernels[];

namespace unisono::device {

const void* kernel_image() {
  return unisono_kernels;
}

}  // namespace unisono::device
