// Memory that the ranks of a group read in place.
#include <c10/util/safe_numerics.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "backend.h"

namespace unisono_torch {

at::Tensor Backend::allocateTensor(long size, at::TensorOptions options) {
  TORCH_CHECK_VALUE(size >= 0, "unisono: allocate_tensor of ", size, " elements");
  TORCH_CHECK_VALUE(options.device().is_cpu(), "unisono: allocate_tensor on ", options.device(),
                    "; unisono allocates only CPU memory");
  std::uint64_t bytes = 0;
  TORCH_CHECK_VALUE(!c10::mul_overflows(static_cast<std::uint64_t>(size),
                                        std::uint64_t{options.dtype().itemsize()}, &bytes) &&
                        bytes <= INT64_MAX,
                    "unisono: allocate_tensor of ", size, " elements; this exceeds any memory");
  auto memory = std::make_shared<c10::DataPtr>(getMemAllocator()->allocate(bytes));
  return at::from_blob(memory->get(), {size}, [memory](void*) {}, options);
}

namespace {

// Each allocation is a separate region of whole pages.
class RegionAllocator final : public c10::Allocator {
 public:
  explicit RegionAllocator(std::function<unisono::Region(std::size_t)> allocate)
      : allocate_(std::move(allocate)) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    auto region = std::make_unique<unisono::Region>(allocate_(std::max<std::size_t>(bytes, 1)));
    void* memory = region->bytes().data();
    return {memory, region.release(),
            [](void* held) { delete static_cast<unisono::Region*>(held); }, at::kCPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  std::function<unisono::Region(std::size_t)> allocate_;
};

}  // namespace

std::shared_ptr<c10::Allocator> Backend::getMemAllocator() {
  const auto self = c10::intrusive_ptr<Backend>::reclaim_copy(this);
  return std::make_shared<RegionAllocator>([self](std::size_t bytes) {
    try {
      return InUse(*self).group().allocate(bytes);
    } catch (const unisono::Error& error) {
      self->raise(error);
    }
  });
}

}  // namespace unisono_torch
