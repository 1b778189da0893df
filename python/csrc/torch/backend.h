// The PyTorch backend "unisono": a c10d::Backend over one unisono::Communicator.
//
// Calls with asyncOp=false run in the caller's thread and return no Work. Other calls return a Work
// that the world's progress thread advances while no thread waits for it. Any thread may call.
// Collectives of a group run in call order.
#pragma once

#include <chrono>
#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "meeting.h"
#include "newer_backend.h"
#include "on_device.h"
#include "pieces.h"
#include "store_host.h"
#include "work.h"

namespace unisono_torch {

template <typename T>
using Pointer = c10::intrusive_ptr<T>;
using WorkPointer = Pointer<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

class Backend final : public NewerBackend {
 public:
  struct Options final : c10d::Backend::Options {
    explicit Options(std::chrono::milliseconds limit = kBackendDefaultTimeout)
        : c10d::Backend::Options("unisono", limit) {}
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    Pointer<c10d::Backend::Options> clone() const override {
      return c10::make_intrusive<Options>(*this);
    }
#endif
  };

  // Waits for all ranks of the group. `shown_as`: backend name in the profiler, "gloo" if this
  // backend replaces gloo.
  Backend(Pointer<c10d::Store> store, const Meeting& meeting, std::string shown_as);
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  ~Backend() override;

  const std::string getBackendName() const override { return "unisono"; }
  Pointer<c10d::Backend::Options> getBackendOptions() override { return options_; }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(Tensors& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(TensorLists& outs, Tensors& ins,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& out, at::Tensor& in,
                              const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(TensorLists& outs, Tensors& ins,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(Tensors& outs, Tensors& ins,
                                              const c10d::AllgatherOptions& options) override;
  WorkPointer gather(TensorLists& outs, Tensors& ins, const c10d::GatherOptions& options) override;
  WorkPointer gather_single(at::Tensor& out, at::Tensor& in,
                            const c10d::GatherOptions& options) override;
  WorkPointer scatter(Tensors& outs, TensorLists& ins,
                      const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outs, TensorLists& ins,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outs, Tensors& ins,
                                              const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_splits,
                            std::vector<int64_t>& in_splits,
                            const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outs, Tensors& ins, const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int to, int tag) override;
  WorkPointer recv(Tensors& tensors, int from, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // Combines all operations that this thread starts before endCoalescing() into one Work.
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPointer endCoalescing() override;

  bool supportsSplitting() const override { return true; }
  Pointer<c10d::Backend> split(const Pointer<c10d::Store>& store, const std::vector<int>& ranks,
                               const Pointer<c10d::Backend::Options>& options) override;
  Pointer<c10d::Backend> merge(const Pointer<c10d::Store>& store,
                               const Pointer<c10d::Backend::Options>& options, const int& rank,
                               const int& size) override;
  // Called by the remaining ranks, all with the same ranks to exclude; the store must still work.
  // They connect a new world, because excluded ranks may have ended.
  bool supportsShrinking() const override { return true; }
  Pointer<c10d::Backend> shrink(const std::vector<int64_t>& left_out, int flags,
                                const Pointer<c10d::Backend::Options>& options) override;

#ifdef C10D_BACKEND_HAS_RECONFIGURE
  // Called only by the members, with their handles, which are new each time. Ends operations in
  // progress.
  bool supportsReconfigure() const override { return true; }
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  WorkPointer reconfigure(const c10d::ReconfigureOptions& options) override;
#endif
#ifdef C10D_BACKEND_HAS_HOOKS
  // The hook is called before the group's first failure is reported, possibly on a library thread.
  void registerAbortHook(int64_t id, c10d::AbortHook hook) override {
    pending_operations_->add_hook(id, std::move(hook));
  }
  void unregisterAbortHook(int64_t id) override { pending_operations_->remove_hook(id); }
#endif
#ifdef C10D_BACKEND_HAS_WINDOW
  bool supportsWindow() const override { return true; }
  // Collective if a tensor is given, which must be in symmetric memory.
  Pointer<c10d::Window> new_window(const std::optional<at::Tensor>& tensor) override;
#endif

  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override;
  // Collective.
  void eagerConnectSingleDevice(at::Device device) override;
  c10d::ErrorType getError() override;
  // Returns the failure that has ended the group as a PyTorch exception, or nullptr.
  std::exception_ptr failure();
  // Supports CPU memory; the CPU device has no index.
  bool supportsTensorAlloc(c10::DeviceIndex device) override { return device < 0; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  // Allocates memory that peers read directly; allocations may outlive the group.
  std::shared_ptr<c10::Allocator> getMemAllocator() override;

  // Ends the operations in progress with an error on all ranks of the world.
  void abort() override;
  // Waits for the operations in progress, then leaves the group.
  void shutdown() override;
  // Leaves, in order, all groups that were not destroyed, so that peers do not treat this rank as
  // dead. Called at the end of the process. `finish_owed`: first waits, within the group's time
  // limit, for pending operations that peers need.
  static void leave_all(bool finish_owed);

 private:
  // Limit for destroy_process_group() to wait for operations that no thread waits for.
  static constexpr std::chrono::milliseconds kFarewell{30'000};

  // Barriers that name late ranks, like gloo's monitored barrier.
  enum class Monitored : std::uint8_t { no, first_late, all_late };
  struct Launch {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* op = nullptr;  // "all_reduce"
    // Owned by the caller; copied only if needed after the call.
    at::TensorList inputs = {};  // for the profiler
    at::TensorList outputs = {};
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    bool async = true;
    Monitored monitored = Monitored::no;
  };
  static constexpr int kNoPeer = INT_MIN;
  WorkPointer launch(const Launch& launch, std::span<Piece> pieces);
  WorkPointer launch(const Launch& launch, Piece piece) {
    return this->launch(launch, std::span<Piece>(&piece, 1));
  }
  WorkPointer launch_on_host(const Launch& launch, std::span<Piece> pieces);
  WorkPointer launch_on_device(const std::shared_ptr<OnDevice>& place, const Launch& launch,
                               std::span<Piece> pieces);
  // Returns the device's state, or nullptr if the device cannot be used. Collective if it does not
  // exist yet.
  std::shared_ptr<OnDevice> on_device(c10::Device device);
  std::shared_ptr<OnDevice> known_device();
  std::shared_ptr<OnDevice> take_device();
  std::optional<c10::Device> device();
  // `limit`: for operations in progress, and for the other ranks of a device.
  void leave(std::chrono::milliseconds limit);
  bool wait_for_all(std::chrono::milliseconds limit);
  void run_here(const Launch& launch, std::span<Piece> pieces);
  WorkPointer transfer(const Launch& launch, const at::Tensor& tensor, bool sends, int peer,
                       int tag);
  WorkPointer noted(WorkPointer work);
  // Returns nullptr if recording is off. `peer`: the peer of a message; kNoPeer: a collective.
  std::shared_ptr<OperationRecord> recorded(const Launch& launch, int peer = kNoPeer);
  Operation::Description describe(const Launch& launch);
  // Takes ownership of the pieces' memory.
  Operation::Description describe(const Launch& launch, std::span<Piece> pieces);
  int timeout_ms(std::chrono::milliseconds asked) const;
  // Marks the group as in use. Leaving the group waits until no thread uses it.
  class InUse {
   public:
    explicit InUse(const Backend& backend)
        : pending_operations_(*backend.pending_operations_), backend_(backend) {
      pending_operations_.begin();
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse() { pending_operations_.end(); }
    bool has_been_left() const { return !backend_.open_; }
    bool has_group() const { return backend_.open_ && backend_.place_.world != nullptr; }
    // Throws if the group has been left.
    unisono::Communicator& group() const;

   private:
    PendingOperations& pending_operations_;
    const Backend& backend_;
  };
  void check_root(const char* op, int64_t root) const { check_rank(op, "root", root); }
  void check_rank(const char* op, const char* what, int64_t rank) const;
  [[noreturn]] void raise(const unisono::Error& error);
  // Returns the error with the beginning of gloo's message about a monitored barrier, for which
  // tools search.
  unisono::Error monitored(const unisono::Error& error, const Launch& launch,
                           unisono::Communicator& group);

  const Handle& handle() const;
  Pointer<c10d::Backend> made_once(const Pointer<c10d::Store>& store, const Meeting& meeting);
  // Converts ranks of this group to ranks of the job.
  std::vector<int> in_job(const std::vector<int>& ranks) const;
  std::chrono::milliseconds limit_of(const Pointer<c10d::Backend::Options>& options) const {
    return options == nullptr ? options_->timeout : options->timeout;
  }

  // PyTorch casts the backend named "gloo" to ProcessGroupGloo, and DistributedDataParallel's
  // logger reads options_->threads through the second member. This member provides zeros there.
  // Must be the first member.
  struct AsGloo {
    std::shared_ptr<void> store;
    const void* options;
  };
  AsGloo as_gloo_;
  Pointer<Options> options_;
  std::string shown_as_;
  Pointer<c10d::Store> store_;
  std::atomic<int> shrinks_ = 0;
  std::mutex making_;  // guards the members below: the latest group created from this group
  c10::weak_intrusive_ptr<c10d::Backend> made_{Pointer<c10d::Backend>()};
  c10::weak_intrusive_ptr<c10d::Store> made_with_{Pointer<c10d::Store>()};
  std::atomic<std::int64_t> timeout_ms_;  // other threads may read it while it is set
  Place place_;
  pid_t pid_;
  // Outlives the world, so that a rank that has left can see rank 0 leave.
  std::unique_ptr<StoreHost> store_host_;
  mutable std::once_flag handle_made_;
  mutable Handle handle_;           // for reconfigure()
  std::set<std::int64_t> numbers_;  // used in reconfigure()
  std::shared_ptr<PendingOperations> pending_operations_ = std::make_shared<PendingOperations>(
      place_.world == nullptr ? nullptr : place_.world->has_failed);
  std::mutex device_mutex_;              // guards the members below
  std::shared_ptr<OnDevice> on_device_;  // nullptr: no device, or a device without kernels
  std::mutex issuing_;                   // guards the order of collectives, and the members below
  std::optional<c10::Device> device_;    // device of tensors outside CPU memory
  std::atomic<uint64_t> sequence_ = 0;
  std::unique_ptr<std::once_flag> record_made_ = std::make_unique<std::once_flag>();
  std::unique_ptr<GroupRecord> record_;  // for the flight recorder; nullptr: recording is off
  std::atomic<bool> open_ = true;
  std::mutex coalescing_;  // guards the members below
  std::map<std::thread::id, std::vector<WorkPointer>> coalesced_;
};

}  // namespace unisono_torch
