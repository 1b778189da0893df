// A second flight recorder, for unisono's groups, because PyTorch's recorder does not accept other
// backends (2.13). unisono/torch/_flight_recorder.py merges both whenever Python requests a dump.
// TORCH_FR_BUFFER_SIZE is the number of operations to keep; 0: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace unisono_torch {

// One started operation. It is in progress until finish() marks its success; dropping the record
// earlier marks a failure.
class OperationRecord {
 public:
  virtual ~OperationRecord() = default;
  virtual void finish() noexcept = 0;
  // Finishes when `is_over` returns true; readers of the record call it until then.
  virtual void finish_when(std::function<bool()> is_over) = 0;
};

// Operations of one group.
class GroupRecord {
 public:
  struct Operation {
    const char* op = nullptr;  // PyTorch's name, such as "all_reduce"
    at::TensorList inputs = {};
    at::TensorList outputs = {};
    std::chrono::milliseconds timeout = {};
    std::uint64_t sequence = 0;  // collectives only
    // A message's ranks: "0->1" for a send to rank 1, "0<-1" for a receive from rank 1.
    std::string between = {};
  };
  virtual ~GroupRecord() = default;
  // Called on any thread. Must not hold a lock for which a thread with the GIL may wait, because it
  // records the Python stack.
  virtual std::shared_ptr<OperationRecord> begin(const Operation& operation) = 0;
};

// Returns nullptr if recording is off. `ranks`: ranks of the job.
std::unique_ptr<GroupRecord> record_group(std::string name, std::string description,
                                          std::vector<std::uint64_t> ranks);

// Return the same formats as torch._C._distributed_c10d._dump_fr_trace() and _dump_fr_trace_json().
std::string dump_flights(bool operations, bool stacks, bool only_active);
std::string dump_flights_json(bool operations, bool only_active);

}  // namespace unisono_torch
