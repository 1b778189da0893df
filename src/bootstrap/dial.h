// Connects one stream to one rank of the job, and retries until the connection exists.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/relay.h"
#include "unisono/error.hpp"

namespace unisono::tcp {

struct MeetOptions {
  int timeout_ms = 60'000;
  SocketOptions socket = {};
  std::optional<Address> from = {};      // local address; unset: the kernel chooses
  std::optional<RelayPlace> relay = {};  // a relay to dial instead of the ranks
  // True if all ranks already listen and none is restarted. Then, if nobody listens at a rank's
  // address, the rank is dead.
  bool all_listen = false;
  // Called about ten times a second. If it returns true, the meeting ends with `aborted`.
  std::function<bool()> interrupted = nullptr;
  // Called before the meeting ends because a rank is dead. Reports the reason to the connected
  // ranks, which wait for this rank and would otherwise blame it.
  std::function<void(Channels, const Error&)> tell = nullptr;
};

class Dial {
 public:
  Dial(const Identity& self, const std::vector<Address>& to, const Wanted& wanted,
       const MeetOptions& options)
      : self_(self), to_(to), wanted_(wanted), options_(options) {}

  void step(std::int64_t now_ms);
  // Dials again, because the connection that was made is lost.
  void again(std::int64_t now_ms) { retry(now_ms, "it closed the connection"); }
  bool done() const { return static_cast<bool>(done_); }
  Channel take() { return std::move(done_); }
  const Wanted& wanted() const { return wanted_; }
  const std::string& obstacle() const { return obstacle_; }
  // Returns how long (ms) the peer has refused this rank for a reason that waiting will not fix.
  std::int64_t refused_for_ms(std::int64_t now_ms) const {
    return refused_ms_ < 0 ? 0 : now_ms - refused_ms_;
  }
  bool is_refused() const { return refused_ms_ >= 0; }
  // Returns how long this process has had no free descriptor for the connection.
  std::int64_t starved_for_ms(std::int64_t now_ms) const {
    return starved_ms_ < 0 ? 0 : now_ms - starved_ms_;
  }
  // Returns true if nobody listens at any of the peer's addresses.
  bool nobody_listens() const { return !options_.relay && closed_ >= to_.size(); }
  // Returns true if the latest attempt got no answer, not even a refusal.
  bool is_unanswered() const { return !options_.relay && unanswered_; }
  void add_events(std::vector<pollfd>& entries) const;
  std::int64_t next_ms() const { return attempt_ ? attempt_->peer.deadline_ms() : next_ms_; }

 private:
  // One connection, from the first attempt to the end of its handshake.
  struct Attempt {
    PendingPeer peer;
    bool connecting = true;
    bool proved = false;  // the peer has proved its identity
  };
  void begin(std::int64_t now_ms);
  bool is_connected(std::int64_t now_ms);
  void shake(std::int64_t now_ms);
  bool ask_relay() const;
  void fail_with(std::int64_t now_ms, int error);
  void retry(std::int64_t now_ms, const std::string& why);
  const Address& to() const { return to_[tried_ % to_.size()]; }

  const Identity& self_;
  const std::vector<Address>& to_;
  std::size_t tried_ = 0;
  std::size_t closed_ = 0;  // consecutive attempts that found nobody listening
  bool unanswered_ = false;
  Wanted wanted_;
  const MeetOptions& options_;
  std::optional<Attempt> attempt_;
  std::int64_t refused_ms_ = -1;
  std::int64_t starved_ms_ = -1;
  std::int64_t next_ms_ = 0;
  std::int64_t pause_ms_ = 2;
  // Time limit of one attempt to connect. If a listener's queue is full, its system drops the
  // connection request, and this rank's system repeats the request only after seconds; so a new
  // attempt is made sooner. The limit doubles each time, for peers that are far away.
  std::int64_t patience_ms_ = 250;
  std::string obstacle_ = "it was not tried";
  Channel done_;
};

}  // namespace unisono::tcp
