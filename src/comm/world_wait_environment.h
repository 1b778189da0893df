// The WaitEnvironment of a rank in a world.
#pragma once

#include "bootstrap/local_host.h"
#include "comm/waiter.h"
#include "diagnose/rosters.h"
#include "membership/membership.h"
#include "transport/network.h"
#include "unisono/options.hpp"

namespace unisono::comm {

class WorldWaitEnvironment final : public WaitEnvironment {
 public:
  // All arguments must outlive this object. `network`: nullptr if there is one host.
  WorldWaitEnvironment(const ConnectOptions& options, int rank, LocalHost& host,
                       transport::Network* network, Membership& membership, Rosters& rosters,
                       const WaitPolicy& policy)
      : options_(options),
        rank_(rank),
        host_(host),
        network_(network),
        membership_(membership),
        rosters_(rosters),
        policy_(policy),
        contention_(host.oversubscribed() ? host.size() : 0) {}

  const WaitPolicy& wait_policy() const noexcept override { return policy_; }
  CoreContention& contention() noexcept override { return contention_; }
  bool aborted() const noexcept override { return membership_.abort().is_set(); }
  void look_for_deaths() noexcept override;
  void ask_whether_to_go_on() noexcept override;  // ConnectOptions::interrupted
  void raise(const std::exception& error) noexcept override { membership_.abort().raise(error); }
  int longest_sleep_us() const noexcept override;
  bool sleep(const std::function<bool()>& look, int timeout_us) override;

 private:
  const ConnectOptions& options_;
  int rank_;
  LocalHost& host_;
  transport::Network* network_;
  Membership& membership_;
  Rosters& rosters_;
  WaitPolicy policy_;
  CoreContention contention_;
};

}  // namespace unisono::comm
