#include "flight_recorder.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/FlightRecorderDetail.hpp>
#include <utility>

#include "convert.h"
#include "unisono/unisono.h"

namespace unisono_torch {

// An event that may have happened.
struct Mark {
  std::atomic<bool> is_set = false;
  std::atomic<bool> is_asked = false;       // is_over is set
  std::function<bool()> is_over = nullptr;  // for operations without a waiter
  bool query() const { return is_set || (is_asked && is_over()); }
};

}  // namespace unisono_torch

namespace c10d {

// Never called: entries contain only the times at which the operation was issued and its end was
// noticed.
template <>
float getDurationFromEvent<unisono_torch::Mark>(unisono_torch::Mark&, unisono_torch::Mark&) {
  return 0;
}

}  // namespace c10d

namespace unisono_torch {
namespace {

using PyTorchRecorder = c10d::FlightRecorder<Mark>;

PyTorchRecorder& pending_operations() {
  static auto* const all = [] {
    PyTorchRecorder* made = PyTorchRecorder::get();
    made->record_accelerator_version("unisono " + std::string(unisono_version()));
    return made;
  }();
  return *all;
}

using Status = c10d::ProcessGroupStatus;

// A dump reads marks after releasing the recorder's lock, so marks that end meanwhile must stay
// alive.
class Dump {
 public:
  Dump() {
    const std::lock_guard lock(mutex());
    ++running();
  }
  Dump(const Dump&) = delete;
  Dump& operator=(const Dump&) = delete;
  ~Dump() {
    std::vector<std::unique_ptr<Mark>> unused;
    const std::lock_guard lock(mutex());
    if (--running() == 0) {
      unused.swap(kept());
    }
  }
  // Keeps the mark of an operation that the recorder has dropped.
  static void leave(std::unique_ptr<Mark> mark) {
    const std::lock_guard lock(mutex());
    if (running() != 0) {
      kept().push_back(std::move(mark));
    }
  }

 private:
  static std::mutex& mutex() {  // guards the members below
    static auto* const one = new std::mutex;
    return *one;
  }
  static int& running() {
    static int count = 0;
    return count;
  }
  static std::vector<std::unique_ptr<Mark>>& kept() {
    static auto* const marks = new std::vector<std::unique_ptr<Mark>>;
    return *marks;
  }
};

class Recorded final : public OperationRecord {
 public:
  Recorded(std::shared_ptr<Status> status, std::uint64_t sequence)
      : status_(std::move(status)), sequence_(sequence) {}
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() override {
    pending_operations().retire_id(id_.id, id_.reset_epoch, false);
    Dump::leave(std::move(end_));
  }

  void finish() noexcept override {
    end_->is_set = true;
    if (sequence_ != 0) {
      status_->lastCompletedSeq = static_cast<std::int64_t>(sequence_);
    }
  }
  void finish_when(std::function<bool()> is_over) override {
    end_->is_over = std::move(is_over);
    end_->is_asked = true;
  }
  Mark& end() noexcept { return *end_; }
  void known_as(const PyTorchRecorder::TraceIdentifier& id) { id_ = id; }

 private:
  std::shared_ptr<Status> status_;
  std::uint64_t sequence_;
  std::unique_ptr<Mark> end_ = std::make_unique<Mark>();
  PyTorchRecorder::TraceIdentifier id_ = {};
};

// PyTorch's tools expect a list of equal tensors, one per rank, as one tensor with a row per rank.
std::vector<at::Tensor> as_recorded(at::TensorList tensors, bool of_each_rank) {
  const bool alike = std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return !tensor.is_sparse() && tensor.sizes() == tensors[0].sizes();
  });
  if (!of_each_rank || !alike || tensors.size() < 2) {
    return tensors.vec();
  }
  auto sizes = tensors[0].sizes().vec();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(tensors.size()));
  return {tensors[0].detach().unsqueeze(0).expand(sizes)};
}

class RecordedGroup final : public GroupRecord {
 public:
  RecordedGroup(std::string name, std::string description)
      : id_(groups()++), name_(std::move(name), std::move(description)) {}

  std::shared_ptr<OperationRecord> begin(const Operation& operation) override {
    static Mark begun = {.is_set = true};
    const bool message = !operation.between.empty();
    auto recorded = std::make_shared<Recorded>(status_, operation.sequence);
    const std::uint64_t number = ++operations_;
    const std::uint64_t messages = message ? ++messages_ : messages_.load();
    if (!message) {
      const auto sequence = static_cast<std::int64_t>(operation.sequence);
      status_->lastEnqueuedSeq = status_->lastStartedSeq = sequence;
    }
    // PyTorch's tools accept no other library's names for the CPU.
    std::string title = "gloo:" + name_in_dumps(operation.op);
    const std::size_t ins = operation.inputs.size();
    const std::size_t outs = operation.outputs.size();
    if (message) {
      title += " " + operation.between;
    }
    recorded->known_as(pending_operations().recordWithResetEnabled(
        id_, name_, operation.sequence, messages, number, std::move(title),
        as_recorded(operation.inputs, outs == 1), as_recorded(operation.outputs, ins == 1), &begun,
        &recorded->end(), operation.timeout, status_, message));
    return recorded;
  }

 private:
  static std::atomic<std::size_t>& groups() {
    static std::atomic<std::size_t> count = 0;
    return count;
  }
  std::size_t id_;
  std::tuple<std::string, std::string> name_;
  std::shared_ptr<Status> status_ = std::make_shared<Status>();
  std::atomic<std::uint64_t> operations_ = 0;
  std::atomic<std::uint64_t> messages_ = 0;
};

}  // namespace

std::unique_ptr<GroupRecord> record_group(std::string name, std::string description,
                                          std::vector<std::uint64_t> ranks) {
  if (!pending_operations().enabled_) {
    return nullptr;
  }
  pending_operations().record_pg_ranks({name, description}, std::move(ranks));
  return std::make_unique<RecordedGroup>(std::move(name), std::move(description));
}

std::string dump_flights(bool operations, bool stacks, bool only_active) {
  const Dump dump;
  return pending_operations().dump(std::nullopt, operations, stacks, only_active);
}

std::string dump_flights_json(bool operations, bool only_active) {
  const Dump dump;
  return pending_operations().dump_json(std::nullopt, operations, only_active);
}

}  // namespace unisono_torch
