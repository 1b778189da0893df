// The network over UCX. One mutex, in Shared, guards the worker and all links, so one thread at a
// time drives UCX.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/ucx/link.h"
#include "transport/ucx/ucx_network.h"

namespace unisono::ucx {

class UcxConnections final : public transport::IntroducedNetwork {
 public:
  UcxConnections(int rank, int ranks);
  UcxConnections(const UcxConnections&) = delete;
  UcxConnections& operator=(const UcxConnections&) = delete;
  ~UcxConnections() override;

  std::string introduction(int peer) override;
  void meet(std::unique_ptr<transport::ControlNetwork> control,
            const std::vector<std::string>& introductions) override;
  std::vector<int> missing() override;

  int rank() const noexcept { return rank_; }
  // Returns nullptr if there is no connection.
  UcxLink* link(int rank) noexcept { return links_[static_cast<std::size_t>(rank)].get(); }
  Shared& shared() noexcept { return shared_; }
  // Returns true if a message whose header has arrived is still being received.
  bool is_receiving() noexcept;

  std::unique_ptr<transport::Transport> lanes(std::uint64_t group, std::span<const int> members,
                                              int rank) override;
  void begin_epoch(std::uint32_t epoch) noexcept override;
  transport::Frames frames(int rank) noexcept override;
  bool progress() noexcept override;
  bool flush() noexcept override;
  bool wait(int timeout_us) noexcept override;
  void wake() noexcept override;
  int waker() const noexcept override;
  int events() const noexcept override;
  transport::Loss first_loss() override;
  transport::Loss loss_of(int rank) override;
  bool has_left(int rank) noexcept override;
  std::string farewell_of(int rank) override;
  std::optional<Abort> aborted() noexcept override;
  void look_for_losses() noexcept override;
  void abort(std::string_view reason) noexcept override;
  void leave(std::string_view farewell) noexcept override;
  bool delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept override;

 private:
  ucs_status_t dispatch(const std::optional<PeerMessage>& arrival) noexcept;
  bool progress_locked() noexcept;

  int rank_;
  Worker worker_;  // this and the rest are guarded by the mutex of shared_, except control_
  Shared shared_;
  std::vector<std::unique_ptr<UcxLink>> links_;  // by rank; after meet(), nullptr: no connection
  std::uint32_t epoch_ = 0;
  std::unique_ptr<transport::ControlNetwork> control_;
};

}  // namespace unisono::ucx
