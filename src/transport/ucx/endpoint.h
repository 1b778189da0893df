// UCX's end of the way to one peer: whether there is one, why it broke, and its end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "transport/ucx/shared.h"

namespace unisono::ucx {

// What the peer told of itself: `loses`, whether UCX can give up peers there.
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

  // Where UCX knows no way there, it is broken.
  void connect(const Introduction& peer) noexcept;
  bool is_open() const noexcept { return endpoint_ != nullptr; }
  ucp_ep_h get() const noexcept { return endpoint_; }

  bool is_broken() const noexcept { return broken_; }
  // The peer has said its last word, and all that it sent before has come.
  bool has_left() const noexcept { return left_; }
  void mark_left() noexcept { left_ = true; }
  bool is_gone() const noexcept { return left_ || broken_; }
  // It carried what no right peer sends.
  bool is_damaged() const noexcept { return detail_ != nullptr; }
  // This process had no memory for what went over it.
  bool lacks_memory() const noexcept { return broken_ && status_ == UCS_ERR_NO_MEMORY; }
  std::string why_broken() const;
  void mark_broken(ucs_status_t status) noexcept;
  // `detail`: a literal.
  void mark_damaged(const char* detail) noexcept;

  // What was sent is on its way when is_flushed().
  void flush() noexcept;
  bool is_flushed() const noexcept;
  // Gives it up: what was under way ends. `gently`: waits until the peer has all. `is_quiet`: UCX
  // has nothing of this process any more that is for the peer, or from it.
  void shut(bool gently, const std::function<bool()>& is_quiet) noexcept;

 private:
  int peer_;
  Shared* shared_;
  ucp_ep_h endpoint_ = nullptr;
  bool can_be_lost_ = false;  // UCX can give this peer up and go on with the others
  void* flushing_ = nullptr;
  bool left_ = false;
  bool broken_ = false;
  ucs_status_t status_ = UCS_OK;
  const char* detail_ = nullptr;
};

}  // namespace unisono::ucx
