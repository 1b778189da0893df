// Tests whether a rank that used to listen still exists: whether its port is open, and whether its
// host answers at all.
#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "base/unique_fd.h"
#include "transport/tcp/address.h"

namespace unisono::tcp {

// Connects to addresses again and again, and sends nothing.
class Probe {
 public:
  explicit Probe(std::vector<Address> to) : to_(std::move(to)) {}

  void step(std::int64_t now_ms);
  // Returns true if the last probe found nobody listening at any of the addresses.
  bool nobody_listens() const { return closed_ >= to_.size(); }
  // Returns the time for which no probe of any address has had an answer, not even a refusal; 0
  // until every address has been tried.
  std::int64_t unanswered_for_ms(std::int64_t now_ms) const {
    return unanswered_rounds() == 0 ? 0 : now_ms - unanswered_ms_;
  }
  // Returns how often all addresses have been tried during that time.
  std::size_t unanswered_rounds() const { return unanswered_ / to_.size(); }
  void add_events(std::vector<pollfd>& entries) const;
  std::int64_t next_ms() const { return next_ms_; }

 private:
  void end(std::int64_t now_ms, int error);

  std::vector<Address> to_;
  std::size_t tried_ = 0;
  std::size_t closed_ = 0;           // consecutive probes that found nobody listening
  std::size_t unanswered_ = 0;       // consecutive probes without any answer
  std::int64_t unanswered_ms_ = -1;  // when the first of those began
  std::int64_t begun_ms_ = 0;
  UniqueFd socket_;
  std::int64_t next_ms_ = 0;  // when the attempt ends, or the next begins
};

// Watches the host of a rank that was alive before.
class HostMonitor {
 public:
  explicit HostMonitor(const std::vector<Address>& of);

  void step(std::int64_t now_ms);
  bool nobody_listens() const { return there_.nobody_listens(); }
  // Returns true if neither the rank's port nor another port of its host has answered for long
  // enough. A slow or stopped rank does not count as gone, because its system still answers. The
  // other port is needed for a listener with a full queue, which does not answer.
  bool host_is_gone(std::int64_t now_ms) const;
  // Returns true if the host does not answer at the moment and may turn out to be gone.
  bool is_in_doubt(std::int64_t now_ms) const { return silent_for_ms(now_ms) > 0; }
  std::int64_t silent_for_ms(std::int64_t now_ms) const { return there_.unanswered_for_ms(now_ms); }
  void add_events(std::vector<pollfd>& entries) const;
  std::int64_t next_ms() const;

 private:
  Probe there_;
  Probe beside_;
  bool looks_beside_ = false;
};

// Throw peer_lost for a dead rank: nobody listens at its port, or its host does not answer.
[[noreturn]] void throw_lost(int self, int rank, const Address& address);
[[noreturn]] void throw_vanished(int self, int rank, const Address& address);

}  // namespace unisono::tcp
