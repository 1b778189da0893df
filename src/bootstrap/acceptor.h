// Where other ranks connect: it listens, hears who they are, and lets in those that prove it.
//
// Strangers cost little: at most kMostPending of them are heard at once (the oldest of those that
// have not even greeted makes room, then the oldest), each for two seconds and 256 bytes, and
// without a proof to compute before a greeting that names the job. Nothing of what they say changes
// anything but a line of refusals(). A rank that has proved who it is never makes room for one that
// has not, and gets more time: it may already believe that it is let in.
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
// Between two sides that have proved who they are: one may be stopped for a while, or busy.
inline constexpr std::int64_t kProvedMs = 10'000;
// What to do where a rank was refused for what it says of itself or of the job.
inline constexpr const char* kAlike =
    "the refusal says what is not alike: give all ranks the same, and start them again";
inline constexpr const char* kNoDescriptor = "this process has no descriptor free (ulimit -n)";
inline constexpr std::size_t kMostRefusals = 64;

// A handshake on a socket, and that of TLS behind it where the job encrypts.
class PendingPeer {
 public:
  PendingPeer(UniqueFd socket, Handshake shake, std::int64_t deadline_ms)
      : socket_(std::move(socket)), shake_(std::move(shake)), deadline_ms_(deadline_ms) {}

  // Reads and writes what can be. False: the other side has hung up.
  bool step();
  // Nothing is left to be done or said.
  bool finished() const;
  // Why TLS did not come about between two sides that had proved who they are; else empty.
  const std::string& tls_problem() const { return tls_problem_; }
  // The other side has not said a byte.
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

// By a clock that only goes on.
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
  // Goes on with all that can go on; never blocks. `now_ms`: clock_ms().
  void step(std::int64_t now_ms);
  // What step() has to be called for: events, and by when (-1: never).
  void add_events(std::vector<pollfd>& entries) const;
  std::int64_t next_deadline_ms() const;
  // Who has been let in since the last call.
  std::vector<Admitted> take_admitted();
  // The ranks that have hung up since the last call before they were let in: they come again, or
  // are gone.
  std::vector<int> take_lost() { return std::exchange(lost_, {}); }
  // Whoever took this one found that it is dead: the rank may come again.
  void let_again(const Wanted& peer) { inside_.erase({peer.peer, peer.stream}); }
  // One line for each host that was refused, of the first of them; of the first that said which
  // rank it is, if there was one.
  std::vector<std::string> refusals() const;
  // One of them is of a rank, for what it said.
  bool has_refused_a_rank() const;
  std::size_t pending() const { return pending_.size(); }
  // For so long it could have let nobody in, as this process has no descriptor free, though no
  // stranger holds one.
  std::int64_t starved_for_ms(std::int64_t now_ms) const {
    return starved_ms_ < 0 || !pending_.empty() ? 0 : now_ms - starved_ms_;
  }

 private:
  struct Pending {
    PendingPeer peer;
    std::string host;
    bool inside = false;  // it counts as one of inside_
  };
  void make_room();
  void accept_all(const UniqueFd& listener, std::int64_t now_ms);
  bool attend(Pending& pending, std::int64_t now_ms);  // false: nothing is left to be done
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
    bool in_words = false;  // it was told why
  };
  std::map<std::string, Line> refusals_;  // by host
  std::int64_t deaf_until_ms_ = 0;        // no descriptor was free for those who wait
  bool deaf_ = false;
  std::int64_t starved_ms_ = -1;
};

}  // namespace unisono::tcp
