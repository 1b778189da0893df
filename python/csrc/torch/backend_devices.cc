// Operations on device tensors.
#include "backend.h"
#include "device/blocks.h"

namespace unisono_torch {
namespace {

using unisono::ErrorCode;

// Returns the device of an operation's tensors, which must all be on one device.
c10::Device device_of(const char* op, std::span<const Piece> pieces) {
  const c10::Device first = pieces.empty() ? c10::Device(c10::kCPU) : pieces.front().device();
  for (const Piece& piece : pieces) {
    TORCH_CHECK_VALUE(piece.device() == first, "unisono:", op, ": tensors on ", first, " and ",
                      piece.device(), "; all must be on one device");
  }
  return first;
}

}  // namespace

std::shared_ptr<OnDevice> Backend::known_device() {
  const std::lock_guard lock(device_mutex_);
  return on_device_;
}

std::shared_ptr<OnDevice> Backend::take_device() {
  const std::lock_guard lock(device_mutex_);
  return std::exchange(on_device_, nullptr);
}

// Returns the device's state. If kernels cannot run on the device, operations copy data through
// host memory.
std::shared_ptr<OnDevice> Backend::on_device(c10::Device device) {
  const InUse use(*this);
  unisono::Communicator& group = use.group();
  const std::lock_guard lock(issuing_);
  if (device_.has_value()) {
    TORCH_CHECK_VALUE(*device_ == device, "unisono: this group works on ", *device_,
                      ", but a tensor is on ", device, "; a group supports one device per rank");
    return known_device();
  }
  TORCH_CHECK_VALUE(!is_capturing(device), "unisono: the first call on ", device,
                    " sets up the group's state, which cannot be part of a graph; make a call "
                    "before the capture, or pass device_id to init_process_group");
  std::shared_ptr<OnDevice> made;
  try {
    // Kernels work only on one host, because the network reads host memory.
    if (group.hosts() == 1 && is_of_cuda(device)) {
      made = std::make_shared<OnDevice>(group, device, timeout_ms(c10d::kUnsetTimeout),
                                        pending_operations_);
    }
  } catch (const unisono::Error& error) {
    if (error.code() != ErrorCode::config && error.code() != ErrorCode::usage) {
      raise(error);
    }
    TORCH_WARN("unisono: operations on ", device, " go through host memory: ", error.message());
  }
  device_ = device;
  const std::lock_guard known(device_mutex_);
  on_device_ = made;
  return made;
}

void Backend::setTimeout(std::chrono::milliseconds timeout) {
  timeout_ms_ = timeout.count();
  options_->timeout = timeout;  // for readers of the options
  if (const auto place = known_device()) {
    place->set_limit(timeout_ms(c10d::kUnsetTimeout));
  }
}

// Returns the group's device, or nullopt if the ranks have not used a device yet.
std::optional<c10::Device> Backend::device() {
  const std::lock_guard lock(issuing_);
  return device_.has_value() ? device_ : getBoundDeviceId();
}

// When the barrier ends, all work that ranks queued on device streams before it is done: the
// group's kernels, or the host, wait for that work.
WorkPointer Backend::barrier(const c10d::BarrierOptions& options) {
  const auto accelerator = at::getAccelerator();
  const auto place = known_device();
  std::optional<c10::Device> device = this->device();
  // PyTorch passes only device_ids, which refer to its accelerator.
  if (!options.device_ids.empty() && accelerator.has_value()) {
    device = c10::Device(*accelerator, static_cast<c10::DeviceIndex>(options.device_ids.front()));
  }
  if (device.has_value()) {
    check_not_capturing(current_stream(*device));
    if (place == nullptr || place->device() != *device) {
      const auto reached = event_on(current_stream(*device));
      look_until([&] { return is_over(*reached); }, std::chrono::milliseconds(-1));
    }
  }
  Launch launch{.type = c10d::OpType::BARRIER,
                .op = "barrier",
                .timeout = options.timeout,
                .async = options.asyncOp};
  Piece piece{.call = {.collective = unisono::Collective::barrier}};
  if (place == nullptr) {
    return launch_on_host(launch, std::span(&piece, 1));
  }
  check_not_capturing(current_stream(place->device()));  // device_ids may name another device
  launch.async = true;
  const WorkPointer work = launch_on_device(place, launch, std::span(&piece, 1));
  if (options.asyncOp) {
    return work;
  }
  const bool is_limited = options.timeout > std::chrono::milliseconds(0);
  work->wait(is_limited ? options.timeout : kNoTimeout);
  return nullptr;
}

void Backend::eagerConnectSingleDevice(at::Device device) {
  if (!device.is_cpu()) {
    setBoundDeviceId(device);  // PyTorch does this except for split groups
    on_device(device);
  }
}

WorkPointer Backend::launch(const Launch& launch, std::span<Piece> pieces) {
  for (Piece& piece : pieces) {
    piece.view_counts();
  }
  const c10::Device device = device_of(launch.op, pieces);
  if (device.is_cpu()) {
    return launch_on_host(launch, pieces);
  }
  if (const auto place = on_device(device)) {
    return launch_on_device(place, launch, pieces);
  }
  for (Piece& piece : pieces) {
    const auto extent = unisono::device::extent_of(piece.call, getRank(), getSize());
    move_to_host(piece, extent.input, extent.output);
  }
  return launch_on_host(launch, pieces);
}

// Uses the device group's limit, which applies to the kernels of all calls.
WorkPointer Backend::launch_on_device(const std::shared_ptr<OnDevice>& place, const Launch& launch,
                                      std::span<Piece> pieces) {
  const InUse use(*this);
  use.group();  // throws if the group has been left
  Operation::Description description = describe(launch);
  const bool is_captured = is_capturing(place->device());
  std::shared_ptr<Tensors> held;
  if (launch.async && !is_captured) {
    held = std::make_shared<Tensors>();
    for (const Piece& piece : pieces) {
      held->insert(held->end(), piece.held.begin(), piece.held.end());
    }
  }
  try {
    const std::lock_guard lock(issuing_);
    description.sequence = ++sequence_;
    const auto work = c10::make_intrusive<DeviceWork>(description, place, is_captured, held);
    work->follow(
        place->run({.pieces = pieces,
                    .outputs = description.outputs,
                    .stream = launch.async ? place->own_stream() : current_stream(place->device()),
                    .record = is_captured ? nullptr : recorded(launch),
                    .held = held,
                    .is_captured = is_captured}));
    return launch.async ? noted(work) : nullptr;
  } catch (const unisono::Error& error) {
    if (error.code() != ErrorCode::usage) {
      place->note_told();
    }
    raise(error);
  }
}

}  // namespace unisono_torch
