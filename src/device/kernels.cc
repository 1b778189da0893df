#include "device/kernels.h"

#include <algorithm>

#include "base/dtypes.h"
#include "device/image.h"
#include "device/kernel_library.h"

namespace unisono::device {
namespace {

constexpr int kMaxThreads = 0;  // CU_FUNC_ATTRIBUTE_...; querying it loads the function

}  // namespace

Kernels::Kernels(const Context& context) : context_(context) {
  const CudaDriver& driver = cuda_driver();
  const InContext here(context);
  try {
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      check_cuda(driver.cuModuleLoadData(&modules_[i], kernel_module(static_cast<Dtype>(i))),
                 "cuModuleLoadData");
      check_cuda(driver.cuModuleGetFunction(&functions_[i], modules_[i], kKernelName),
                 "cuModuleGetFunction");
      int threads = 0;
      check_cuda(driver.cuFuncGetAttribute(&threads, kMaxThreads, functions_[i]),
                 "cuFuncGetAttribute");
      int blocks = 0;
      check_cuda(
          driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions_[i], kThreads, 0),
          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
      blocks_ = i == 0 ? blocks : std::min(blocks_, blocks);
    }
  } catch (...) {
    unload();
    throw;
  }
}

Kernels::~Kernels() {
  unload();
}

void Kernels::unload() noexcept {
  quietly_in(context_.handle(), [this] {
    for (void* const module : modules_) {
      if (module != nullptr) {
        cuda_driver().cuModuleUnload(module);
      }
    }
  });
}

ReduceOp kernel_op(Dtype dtype, ReduceOp op) {
  if (dtype != Dtype::boolean) {
    return op;
  }
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::lor:
    case ReduceOp::bor:
      return ReduceOp::lor;
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::land:
    case ReduceOp::band:
      return ReduceOp::land;
    case ReduceOp::lxor:
    case ReduceOp::bxor:
      return ReduceOp::lxor;
    default:
      return op;
  }
}

bool has_kernel(Dtype dtype, ReduceOp op) {
  const bool integer = !is_float(dtype);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::max:
      return true;
    case ReduceOp::avg:
      return dtype != Dtype::boolean;
    case ReduceOp::premul_sum:
      return !integer;
    case ReduceOp::user:
      return false;
    default:
      return integer;
  }
}

}  // namespace unisono::device
