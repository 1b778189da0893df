// UCX's endpoint for one peer: whether it exists, why it broke, and how it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "transport/ucx/shared.h"

namespace unisono::ucx {

// The peer's introduction. `loses` tells whether UCX can give up peers on the peer's host.
struct Introduction {
  std::uint64_t pass = 0;
  bool loses = false;
  std::string address;
};

class Endpoint {
 public:
  Endpoint(int peer, Shared* shared) : peer_(peer), shared_(shared) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Connects. The endpoint is broken if UCX knows no path to the peer.
  void connect(const Introduction& peer) noexcept;
  bool is_open() const noexcept { return endpoint_ != nullptr; }
  ucp_ep_h get() const noexcept { return endpoint_; }

  bool is_broken() const noexcept { return broken_; }
  // Returns true if the peer's last message has arrived, and everything before it.
  bool has_left() const noexcept { return left_; }
  void mark_left() noexcept { left_ = true; }
  bool is_gone() const noexcept { return left_ || broken_; }
  // Returns true if the connection carried data that no correct peer sends.
  bool is_damaged() const noexcept { return detail_ != nullptr; }
  // Returns true if this process had no memory for the peer's data.
  bool lacks_memory() const noexcept { return broken_ && status_ == UCS_ERR_NO_MEMORY; }
  std::string why_broken() const;
  void mark_broken(ucs_status_t status) noexcept;
  // `detail` must be a string literal.
  void mark_damaged(const char* detail) noexcept;

  // Starts flushing; is_flushed() returns true when all sent data has left.
  void flush() noexcept;
  bool is_flushed() const noexcept;
  // Closes the endpoint and ends pending requests. With `gently`, first waits until the peer has
  // everything. `is_quiet` returns true when UCX no longer holds memory of this process for this
  // peer.
  void shut(bool gently, const std::function<bool()>& is_quiet) noexcept;

 private:
  int peer_;
  Shared* shared_;
  ucp_ep_h endpoint_ = nullptr;
  bool can_be_lost_ = false;  // UCX can give this peer up and continue with the others
  void* flushing_ = nullptr;
  bool left_ = false;
  bool broken_ = false;
  ucs_status_t status_ = UCS_OK;
  const char* detail_ = nullptr;
};

}  // namespace unisono::ucx
