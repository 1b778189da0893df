// libunisono_cuda.so.0: the modules that nvcc made, put in by the linker as they are. The build
// says UNISONO_EACH_MODULE, a MODULE(dtype) of each.
#include "unisono/types.hpp"

#define MODULE(dtype)                                                                        \
  asm(".section .rodata\n.balign 64\nunisono_module_" #dtype ":\n.incbin \"" UNISONO_MODULES \
      "/" #dtype ".fatbin\"\n.previous\n");                                                  \
  extern "C" const unsigned char unisono_module_##dtype[];
UNISONO_EACH_MODULE
#undef MODULE

// By the number of the Dtype; nullptr: there is none.
extern "C" __attribute__((visibility("default"))) const void* unisono_cuda_kernels(int dtype) {
#define MODULE(dtype)                           \
  case static_cast<int>(unisono::Dtype::dtype): \
    return unisono_module_##dtype;
  switch (dtype) {
    UNISONO_EACH_MODULE
    default:
      return nullptr;
  }
}
