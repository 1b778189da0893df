// libunisono_cuda.so.0: the modules from nvcc, embedded by the linker. The build defines
// UNISONO_EACH_MODULE, with one MODULE(dtype) per module.
#include "unisono/types.hpp"

#define MODULE(dtype)                                                                        \
  asm(".section .rodata\n.balign 64\nunisono_module_" #dtype ":\n.incbin \"" UNISONO_MODULES \
      "/" #dtype ".fatbin\"\n.previous\n");                                                  \
  extern "C" const unsigned char unisono_module_##dtype[];
UNISONO_EACH_MODULE
#undef MODULE

// Returns the module for the number of a Dtype, or nullptr.
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
