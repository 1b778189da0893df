// Accepts connections of other ranks: listens, authenticates, and admits ranks that prove the
// token.
//
// Strangers cost little. At most kMostPending connections are handled at once. When another
// connection comes, the oldest one without a greeting is dropped; if all have sent a greeting, the
// oldest one is dropped. Each connection gets two seconds and 256 bytes, and no proof is computed
// before a greeting that names the job. A stranger can change only one thing: a line of refusals().
// A rank that has proved its identity is never dropped in favour of a peer that has not. It also
// gets more time, because it may already believe that it has been admitted.
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/handshake.h"
#include "transport/tcp/channel.h"
#include "transport/tcp/socket.h"

namespace unisono::tcp {

inline constexpr std::size_t kMostPending = 64;
inline constexpr std::int64_t kHandshakeMs = 2000;
// Time limit after both sides have proved their identities; either side may be stopped or busy for
// a while.
inline constexpr std::int64_t kProvedMs = 10'000;
// The advice for a rank that was refused because its description or its job does not match.
inline constexpr const char* kAlike =
    "the refusal says what differs: give all ranks the same value, and restart them";
inline constexpr const char* kNoDescriptor = "this process has no free file descriptor (ulimit -n)";
inline constexpr std::size_t kMostRefusals = 64;

// A handshake on a socket, followed by that of TLS if the job encrypts.
class PendingPeer {
 public:
  PendingPeer(UniqueFd socket, Handshake shake, std::int64_t deadline_ms)
      : socket_(std::move(socket)), shake_(std::move(shake)), deadline_ms_(deadline_ms) {}

  // Reads and writes as much as possible. Returns false if the other side has closed.
  bool step();
  // Returns true if nothing more must be received or sent.
  bool finished() const;
  // Returns the reason why TLS failed after both sides had proved their identities; otherwise
  // empty.
  const std::string& tls_problem() const { return tls_problem_; }
  // Returns true if the other side has not sent a byte.
  bool is_silent() const { return got_ == 0 && shake_.listens() && !shake_.has_greeted(); }
  Handshake& shake() { return shake_; }
  const Handshake& shake() const { return shake_; }
  int descriptor() const { return socket_.get(); }
  short events() const;
  std::int64_t deadline_ms() const { return deadline_ms_; }
  void wait_until(std::int64_t deadline_ms) { deadline_ms_ = deadline_ms; }
  Channel take() {
    return {std::move(socket_), std::move(tls_), shake_.self().protection.checksum};
  }

 private:
  bool write();
  bool encrypt();

  UniqueFd socket_;
  Handshake shake_;
  std::unique_ptr<Tls> tls_ = {};
  bool tls_done_ = false;
  std::string tls_problem_ = {};
  std::int64_t deadline_ms_;
  std::array<std::byte, kHandshakeBytes> in_ = {};
  std::size_t got_ = 0;
};

struct Admitted {
  Wanted peer;
  Channel socket;
};

// Returns the time of a monotonic clock.
std::int64_t clock_ms();

class Acceptor {
 public:
  Acceptor(std::vector<UniqueFd> listeners, Identity self, SocketOptions options = {})
      : listeners_(std::move(listeners)), self_(std::move(self)), options_(std::move(options)) {}
  Acceptor(UniqueFd listener, Identity self, SocketOptions options = {})
      : self_(std::move(self)), options_(std::move(options)) {
    listeners_.push_back(std::move(listener));
  }

  std::vector<Address> addresses() const;
  Address address() const { return local_address(listeners_.front().get()); }
  // Advances all handshakes; never blocks. `now_ms` is a time of clock_ms().
  void step(std::int64_t now_ms);
  // Adds the events for which step() must be called. next_deadline_ms() returns the time by which
  // it must be called in any case (-1: none).
  void add_events(std::vector<pollfd>& entries) const;
  std::int64_t next_deadline_ms() const;
  // Returns the ranks admitted since the last call.
  std::vector<Admitted> take_admitted();
  // Returns the ranks that, since the last call, closed their connection before they were admitted.
  // They may try again.
  std::vector<int> take_lost() { return std::exchange(lost_, {}); }
  // Allows a rank to connect again, because its admitted connection turned out to be dead.
  void let_again(const Wanted& peer) { inside_.erase({peer.peer, peer.stream}); }
  // Returns one line per refused host: its first refusal that named a rank, or its first refusal if
  // none did.
  std::vector<std::string> refusals() const;
  // Returns true if a refusal concerns a rank that named itself.
  bool has_refused_a_rank() const;
  std::size_t pending() const { return pending_.size(); }
  // Returns the time for which nobody could be admitted because this process has no free
  // descriptor, although no stranger holds one.
  std::int64_t starved_for_ms(std::int64_t now_ms) const {
    return starved_ms_ < 0 || !pending_.empty() ? 0 : now_ms - starved_ms_;
  }

 private:
  struct Pending {
    PendingPeer peer;
    std::string host;
    bool inside = false;  // counts as one of inside_
  };
  void make_room();
  void accept_all(const UniqueFd& listener, std::int64_t now_ms);
  bool attend(Pending& pending, std::int64_t now_ms);  // false: nothing remains to be done
  void turn_away(const Pending& pending, const std::string& why);
  void note(const Pending& pending, const std::string& why);

  std::vector<UniqueFd> listeners_;
  Identity self_;
  SocketOptions options_;
  std::list<Pending> pending_;
  std::set<std::pair<int, int>> inside_;  // rank and stream
  std::vector<Admitted> admitted_;
  std::vector<int> lost_;
  struct Line {
    std::string text;
    bool knows_peer = false;
    bool in_words = false;  // the peer was told why
  };
  std::map<std::string, Line> refusals_;  // by host
  std::int64_t deaf_until_ms_ = 0;        // after no descriptor was free for a waiting peer
  bool deaf_ = false;
  std::int64_t starved_ms_ = -1;
};

}  // namespace unisono::tcp
