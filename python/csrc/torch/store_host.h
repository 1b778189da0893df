// The rank that keeps the store of init_process_group("env://"), as the other ranks see it.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unisono_torch {

// A connection that only notices when the store's server ends.
//
// Rank 0 ends the server when it drops its last group, and starts another one when it makes groups
// again. A rank that comes back in between would meet in a store that is about to vanish.
class StoreHost {
 public:
  // Connects if the store is PyTorch's TCPStore at MASTER_PORT and this rank is not the one that
  // keeps it. torchrun's store stays, and is no case for this.
  StoreHost(const c10d::Store& store, int rank);
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;
  ~StoreHost();

  // Returns when the server has ended, at once if there is no connection.
  void wait_for_end(std::chrono::milliseconds limit) const;

 private:
  int socket_ = -1;
};

}  // namespace unisono_torch
