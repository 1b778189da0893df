// The membership of a world: the live ranks, their agreements, and the error that has ended the
// world, if there is one.
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <vector>

#include "membership/abort_word.h"
#include "membership/agreement.h"
#include "membership/watch.h"

namespace unisono::comm {

// Any thread may call, except agreement().
class Membership {
 public:
  // The arguments are those of Watch.
  Membership(const Hosts& hosts, LocalHost& host, transport::Network* network, int rank,
             const std::vector<int>& first_ranks);

  AbortWord& abort() noexcept { return abort_; }
  const AbortWord& abort() const noexcept { return abort_; }
  Watch& watch() noexcept { return watch_; }
  HostAgreement& agreement() noexcept { return agreement_; }

  // Looks for deaths. Then returns the error that has ended the world, if there is one, without
  // waiting.
  std::optional<Error> failure();
  // Becomes true when shrink() has made a world of the remaining ranks, which it does only once.
  std::atomic<bool>& shrunk() noexcept { return shrunk_; }

 private:
  AbortWord abort_;
  Watch watch_;
  HostAgreement agreement_;
  std::atomic<bool> shrunk_ = false;
};

}  // namespace unisono::comm
