// A second flight recorder, for unisono's groups, because PyTorch's own does not accept other
// backends (2.13). unisono/torch/_flight_recorder.py joins the two wherever Python requests a dump.
// TORCH_FR_BUFFER_SIZE is the number of operations that it keeps; 0: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace unisono_torch {

// One operation, from its start on. It is under way until finish() says that it was right; a record
// that is dropped before failed.
class OperationRecord {
 public:
  virtual ~OperationRecord() = default;
  virtual void finish() noexcept = 0;
  // Until then, readers of the record call `is_over`.
  virtual void finish_when(std::function<bool()> is_over) = 0;
};

// The operations of one group.
class GroupRecord {
 public:
  struct Operation {
    const char* op = nullptr;  // one of PyTorch's: "all_reduce"
    at::TensorList inputs = {};
    at::TensorList outputs = {};
    std::chrono::milliseconds timeout = {};
    std::uint64_t sequence = 0;  // of a collective
    // A message's ranks: "0->1" of a send to rank 1, "0<-1" of a receive from it.
    std::string between = {};
  };
  virtual ~GroupRecord() = default;
  // Any thread. Must not hold what a thread with Python's lock may wait for: where Python has
  // called, it is written down.
  virtual std::shared_ptr<OperationRecord> begin(const Operation& operation) = 0;
};

// nullptr: nothing is to be recorded. `ranks`: of the job.
std::unique_ptr<GroupRecord> record_group(std::string name, std::string description,
                                          std::vector<std::uint64_t> ranks);

// As torch._C._distributed_c10d._dump_fr_trace() and _dump_fr_trace_json().
std::string dump_flights(bool operations, bool stacks, bool only_active);
std::string dump_flights_json(bool operations, bool only_active);

}  // namespace unisono_torch
