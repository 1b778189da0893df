// A UCX worker and its context: it drives all requests, and owns the address at which peers reach
// this process. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "transport/ucx/ucx_api.h"

namespace unisono::ucx {

// Returns the worker's devices that reach peers on other hosts; excludes shared memory and loopback
// within this process. Throws config.
std::vector<std::string> list_devices();

class Worker {
 public:
  // Throws resource, and config if UCX is unavailable or has no usable device.
  Worker(int rank, int ranks);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  const UcxApi& api() const noexcept { return api_; }
  ucp_worker_h get() const noexcept { return worker_; }
  std::string address() const;  // bytes; throws resource
  // Returns true if something happened.
  bool progress() noexcept { return !abandoned_ && api_.worker_progress(worker_) != 0; }
  // Returns a descriptor that becomes readable when something happens after arm(). arm() returns
  // false if something has happened already.
  int descriptor() const noexcept { return descriptor_; }
  bool arm() noexcept { return abandoned_ || api_.worker_arm(worker_) == UCS_OK; }
  // Registers the handler for messages with this number. REQUIRES: no progress is being made.
  void handle(unsigned id, ucp_am_recv_callback_t callback, void* context);
  // The devices that UCX can choose among: "tcp/eth0".
  const std::vector<std::string>& devices() const noexcept { return devices_; }
  // Returns true if UCX can give up one peer and continue with the others. It cannot over shared
  // memory alone.
  bool can_lose_peers() const noexcept { return can_lose_peers_; }
  // Returns true if the system's TCP is UCX's only path. UCX then copies all data, so a rendezvous
  // saves no copy and cannot use a second device.
  bool only_copies() const noexcept { return only_copies_; }
  // Stops calling UCX. UCX keeps the memory of this process that it still holds.
  void abandon() noexcept { abandoned_ = true; }
  bool is_abandoned() const noexcept { return abandoned_; }

 private:
  const UcxApi& api_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
  std::vector<std::string> devices_;
  bool can_lose_peers_ = false;
  bool only_copies_ = false;
  bool abandoned_ = false;
};

}  // namespace unisono::ucx
