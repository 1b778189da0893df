// The connections of all ranks with rank 0, for blocking exchanges during set-up.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "bootstrap/meet.h"

namespace unisono::comm {

class Star {
 public:
  Star(const JoinRequest& join_request, std::vector<UniqueFd> links, int timeout_ms,
       std::function<bool()> interrupted);

  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine);
  UniqueFd broadcast_fd(int fd);

  // Transfers between rank 0 and another rank. Errors: peer_lost, timeout, or the error that rank 0
  // sends.
  void send(int to, FrameType type, std::span<const std::byte> bytes, std::span<const int> fds);
  Frame receive(FrameType expected);
  // Starts the clock of one exchange.
  void begin() { deadline_ = Deadline::of_timeout(timeout_ms_).asking(interrupted_); }

  // Ends the exchange with an error; rank 0 sends the reason to all others.
  [[noreturn]] void fail(ErrorCode code, const std::string& message, int peer = -1);
  // Reports the error that ends the set-up on this rank: to rank 0, or, on rank 0, to all others.
  void tell(const Error& error) noexcept;

 private:
  Frame receive_from(int from, FrameType expected);
  void wait_as_root(int peer, short events, bool watch_others);
  void wait_as_other(short events);
  std::string absent_after(int first) const;
  [[noreturn]] void fail_closed(int peer);
  [[noreturn]] void fail_with(const Frame& reason);
  int link(int peer) const { return links_[rank_ == 0 ? static_cast<std::size_t>(peer) : 0].get(); }

  int rank_;
  int size_;
  RankNames names_;
  std::vector<UniqueFd> links_;
  int timeout_ms_;
  std::function<bool()> interrupted_;
  Deadline deadline_;
};

}  // namespace unisono::comm
