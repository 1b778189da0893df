// A PyTorch device whose streams are threads and whose memory is host memory, on the driver without
// a GPU. Its tensors behave like CUDA tensors in time: work is done later, streams wait for events,
// and freed memory is reused at once. All arithmetic runs on the CPU.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "driver.h"
#include "memory.h"

namespace fake_device {
namespace {

using c10::Device;
using c10::Stream;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kFake; }
  Device exchangeDevice(Device device) const override {
    return Device(kFake, exchange_device(device.index()));
  }
  Device getDevice() const override { return Device(kFake, current_device()); }
  void setDevice(Device device) const override { exchange_device(device.index()); }
  void uncheckedSetDevice(Device device) const noexcept override {
    exchange_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  Stream getStream(Device device) const override { return current_stream(device.index()); }
  Stream getDefaultStream(Device device) const override { return default_stream(device.index()); }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return pooled_stream(device.index());
  }
  Stream getNewStream(Device device, int) const override { return pooled_stream(device.index()); }
  Stream exchangeStream(Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const Stream stream) const override { return handle_of(stream); }
  void record(void** event, const Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    fake_device::record(event, stream);
  }
  void block(void* event, const Stream& stream) const override {
    fake_device::block(event, stream);
  }
  bool queryEvent(void* event) const override { return is_over(event); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { destroy(event); }
  bool queryStream(const Stream& stream) const override { return is_done(stream); }
  bool isStreamCapturing(const Stream& stream) const override { return is_capturing(stream); }
  void synchronizeStream(const Stream& stream) const override { synchronize(stream); }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const Stream& stream) const override {
    note_use(memory.get(), stream);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange_device(device); }
  Device getDeviceFromPtr(void* memory) const override { return Device(kFake, device_of(memory)); }
};

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard there(device);
  return at::detail::empty_generic(sizes, allocator(), kKeys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard there(device);
  return at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys,
                                           c10::dtype_or_default(type));
}

// The same memory as a CPU tensor, for work of streams.
at::Tensor as_cpu(const at::Tensor& tensor) {
  if (tensor.is_cpu()) {
    return tensor.detach();
  }
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), [](void*) {},
      at::TensorOptions().dtype(tensor.dtype()));
}

// A copy from the CPU takes the present contents; for a copy to the CPU, the caller waits.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (to.numel() == 0) {
    return to;
  }
  const at::Tensor source = from.is_cpu() ? from.detach().clone() : as_cpu(from);
  TORCH_CHECK(from.is_cpu() || to.is_cpu() || from.device() == to.device(),
              "no copies from device to device");
  const Stream stream = current_stream((from.is_cpu() ? to : from).device().index());
  enqueue(stream, [source, target = as_cpu(to)] {
    const at::NoGradGuard no_grad;
    target.copy_(source);
  });
  if (to.is_cpu()) {
    synchronize(stream);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Tensor& set_memory(at::Tensor& tensor, at::Storage memory, std::int64_t offset,
                       c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::native::set_storage_cpu_(tensor, std::move(memory), offset, sizes, strides);
}

at::Scalar number_of(const at::Tensor& tensor) {
  return tensor.cpu().item();
}

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::SetAllocator(kFake, allocator());
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("view", at::native::view);
  library.impl("view.dtype", at::native::view_dtype);
  library.impl("view_as_real", at::native::view_as_real);
  library.impl("unfold", at::native::unfold);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("resize_", at::native::resize_);
  library.impl("set_.source_Storage_storage_offset", set_memory);
  library.impl("_local_scalar_dense", number_of);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

}  // namespace
}  // namespace fake_device
