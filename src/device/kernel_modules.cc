// libunisono_cuda.so.0: the modules that nvcc made, put in by the linker as they are.
#include <cstddef>

#define MODULE(dtype)                                                                        \
  asm(".section .rodata\n.balign 64\nunisono_module_" #dtype ":\n.incbin \"" UNISONO_MODULES \
      "/" #dtype ".fatbin\"\n.previous\n");                                                  \
  extern "C" const unsigned char unisono_module_##dtype[];
MODULE(i8)
MODULE(u8)
MODULE(i32)
MODULE(u32)
MODULE(i64)
MODULE(u64)
MODULE(f16)
MODULE(bf16)
MODULE(f8e4m3)
MODULE(f8e5m2)
MODULE(f32)
MODULE(f64)

// As Dtype counts them; nullptr: there is none.
extern "C" __attribute__((visibility("default"))) const void* unisono_cuda_kernels(int dtype) {
  static const void* const modules[] = {
      unisono_module_i8,     unisono_module_u8,     unisono_module_i32, unisono_module_u32,
      unisono_module_i64,    unisono_module_u64,    unisono_module_f16, unisono_module_bf16,
      unisono_module_f8e4m3, unisono_module_f8e5m2, unisono_module_f32, unisono_module_f64};
  const auto count = static_cast<int>(sizeof(modules) / sizeof(modules[0]));
  return dtype >= 0 && dtype < count ? modules[dtype] : nullptr;
}
