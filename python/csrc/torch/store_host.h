// Watches the rank that hosts the store of init_process_group("env://").
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unisono_torch {

// A connection that only detects the end of the store's server.
//
// Rank 0 ends the server when it drops its last group, and starts a new server when it creates
// groups again. A rank that returns in between would use a store that is about to end.
class StoreHost {
 public:
  // Connects if the store is PyTorch's TCPStore at MASTER_PORT and another rank hosts it. Does not
  // connect to torchrun's store, which outlives the ranks.
  StoreHost(const c10d::Store& store, int rank);
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;
  ~StoreHost();

  // Waits until the server has ended. Returns at once if there is no connection.
  void wait_for_end(std::chrono::milliseconds limit) const;

 private:
  int socket_ = -1;
};

}  // namespace unisono_torch
