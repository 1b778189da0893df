// torch.distributed's windows, over symmetric memory: memory of each rank that other ranks read and
// write in place.
#include <cstdint>
#include <exception>
#include <optional>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#include <utility>

#include "backend.h"
#include "common/without_python.h"

#ifdef C10D_BACKEND_HAS_WINDOW

namespace unisono_torch {
namespace {

namespace symmetric = c10d::symmetric_memory;

// Channels for signal(), and for the barrier before memory is released.
constexpr int kSignals = 0;
constexpr int kFarewells = 1;

// Work that completes in the calling thread.
class Done final : public c10d::Work {
 public:
  Done() : Work(-1, c10d::OpType::UNKNOWN) { finish(); }
};

// Work that completes on the thread that completes futures.
class Elsewhere final : public c10d::Work {
 public:
  Elsewhere() : Work(-1, c10d::OpType::UNKNOWN) {}
  static WorkPointer start(std::function<void()> task) {
    auto work = c10::make_intrusive<Elsewhere>();
    run_elsewhere([work, task = std::move(task)] {
      try {
        task();
        work->finish();
      } catch (...) {
        work->finish(std::current_exception());
      }
    });
    return work;
  }
};

class SymmetricWindow final : public c10d::Window {
 public:
  SymmetricWindow(std::string group, std::chrono::milliseconds timeout)
      : group_(std::move(group)), timeout_(timeout) {}

  void tensor_register(const at::Tensor& tensor, bool owning) override {
    const unisono_signals::WithoutPython unlocked;
    TORCH_CHECK_VALUE(handle_ == nullptr,
                      "unisono:window: it already has a tensor; deregister that tensor first");
    TORCH_CHECK_VALUE(is_plain(tensor), "unisono:window: the tensor's elements do not follow each ",
                      "other in memory; give a contiguous one");
    TORCH_CHECK_VALUE(tensor.is_cpu() && symmetric::has_allocator(at::kCPU),
                      "unisono:window: a tensor on ", tensor.device(), "; windows need CPU memory");
    handle_ = symmetric::rendezvous(tensor, group_);
    options_ = tensor.options();
    sizes_ = tensor.sizes().vec();
    offset_ = tensor.storage_offset();
    count_ = tensor.numel();
    if (owning) {
      held_ = tensor;
    }
  }

  // When this returns, no rank uses the memory.
  void tensor_deregister() override {
    const unisono_signals::WithoutPython unlocked;
    handle().barrier(kFarewells, milliseconds(c10d::kUnsetTimeout));
    handle_.reset();
    held_.reset();
  }

  WorkPointer put(const at::Tensor& tensor, std::int64_t to, std::int64_t at_element,
                  bool /*async: copying is the work*/,
                  const c10d::PutOptions& /*options*/) override {
    static_cast<void>(handle());
    TORCH_CHECK_VALUE(tensor.is_cpu() && tensor.scalar_type() == options_.dtype(),
                      "unisono:window: put of ", tensor.scalar_type(), " on ", tensor.device(),
                      " into a window of ", options_.dtype(), " on the CPU");
    TORCH_CHECK_VALUE(at_element >= 0 && tensor.numel() <= count_ - at_element,
                      "unisono:window: put of ", tensor.numel(), " elements at ", at_element,
                      " into a window of ", count_);
    const unisono_signals::WithoutPython unlocked;
    const at::NoGradGuard no_grad;
    remote(to).view({-1}).narrow(0, at_element, tensor.numel()).copy_(tensor.reshape({-1}));
    return c10::make_intrusive<Done>();
  }

  at::Tensor map_remote_tensor(std::int64_t rank) override { return remote(rank); }

  WorkPointer signal(std::int64_t to, bool async, const c10d::SignalOptions& options) override {
    check_rank(to);
    return run(async, [handle = handle_, to, ms = milliseconds(options.timeout)] {
      handle->put_signal(static_cast<int>(to), kSignals, ms);
    });
  }
  WorkPointer wait_signal(std::int64_t from, bool async,
                          const c10d::WaitSignalOptions& options) override {
    check_rank(from);
    return run(async, [handle = handle_, from, ms = milliseconds(options.timeout)] {
      handle->wait_signal(static_cast<int>(from), kSignals, ms);
    });
  }
  c10d::WindowAttr get_attr(std::int64_t peer) override {
    check_rank(peer);
    return {.access_type = c10d::WindowAccessType::UNIFIED};
  }

 private:
  symmetric::SymmetricMemory& handle() const {
    TORCH_CHECK_VALUE(handle_ != nullptr, "unisono:window: it has no tensor; call ",
                      "tensor_register() on all ranks first");
    return *handle_;
  }
  void check_rank(std::int64_t rank) const {
    TORCH_CHECK_VALUE(rank >= 0 && rank < handle().get_world_size(), "unisono:window: ", rank,
                      " is not a rank of this group; ranks are 0 to ",
                      handle().get_world_size() - 1);
  }
  std::size_t milliseconds(std::chrono::milliseconds asked) const {
    return static_cast<std::size_t>(
        (asked > std::chrono::milliseconds(0) ? asked : timeout_).count());
  }
  at::Tensor remote(std::int64_t rank) const {
    check_rank(rank);
    return handle_->get_buffer(static_cast<int>(rank), sizes_,
                               c10::typeMetaToScalarType(options_.dtype()), offset_);
  }
  static WorkPointer run(bool async, std::function<void()> task) {
    if (async) {
      return Elsewhere::start(std::move(task));
    }
    const unisono_signals::WithoutPython unlocked;
    task();
    return c10::make_intrusive<Done>();
  }

  std::string group_;
  std::chrono::milliseconds timeout_;
  Pointer<symmetric::SymmetricMemory> handle_;
  at::Tensor held_;
  at::TensorOptions options_;
  std::vector<std::int64_t> sizes_;
  std::int64_t offset_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

Pointer<c10d::Window> Backend::new_window(const std::optional<at::Tensor>& tensor) {
  auto window = c10::make_intrusive<SymmetricWindow>(getGroupUid(),
                                                     std::chrono::milliseconds(timeout_ms_.load()));
  if (tensor.has_value()) {
    window->tensor_register(*tensor, true);
  }
  return window;
}

}  // namespace unisono_torch

#endif
