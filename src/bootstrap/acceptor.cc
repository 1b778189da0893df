#include "bootstrap/acceptor.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace unisono::tcp {
namespace {

// Pause after the process ran out of descriptors.
constexpr std::int64_t kDeafMs = 50;

}  // namespace

std::int64_t clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

bool PendingPeer::write() {
  while (!shake_.output().empty()) {
    const ssize_t put = ::send(socket_.get(), shake_.output().data(), shake_.output().size(),
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    shake_.sent(static_cast<std::size_t>(put));
  }
  return true;
}

bool PendingPeer::step() {
  if (!write()) {
    return false;
  }
  while (shake_.state() == Handshake::State::going_on) {
    // Reads exactly one frame; the bytes after it belong to the connection.
    const ssize_t got = ::recv(socket_.get(), in_.data() + got_, in_.size() - got_, MSG_DONTWAIT);
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    got_ += static_cast<std::size_t>(got);
    if (got_ < in_.size()) {
      continue;
    }
    got_ = 0;
    shake_.feed(in_);
    if (!write()) {
      return false;
    }
  }
  return shake_.state() != Handshake::State::done || !shake_.output().empty() || encrypt();
}

bool PendingPeer::encrypt() {
  if (!shake_.self().protection.tls || tls_done_) {
    return true;
  }
  if (tls_ == nullptr) {
    tls_ = std::make_unique<Tls>(socket_.get(), shake_.session_key(), shake_.listens(),
                                 shake_.self().certificates);
  }
  const Tls::State state = tls_->shake();
  tls_done_ = state == Tls::State::done;
  if (state == Tls::State::failed) {
    tls_problem_ = tls_->problem();
  }
  return state != Tls::State::failed;
}

bool PendingPeer::finished() const {
  const Handshake::State state = shake_.state();
  if (state == Handshake::State::done && shake_.self().protection.tls && !tls_done_) {
    return false;
  }
  return shake_.output().empty() &&
         (state == Handshake::State::done || state == Handshake::State::refused);
}

short PendingPeer::events() const {
  const bool says = !shake_.output().empty() || (tls_ != nullptr && tls_->has_unsent());
  return says ? POLLIN | POLLOUT : POLLIN;
}

void Acceptor::step(std::int64_t now_ms) {
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    pending = attend(*pending, now_ms) ? std::next(pending) : pending_.erase(pending);
  }
  deaf_ = now_ms < deaf_until_ms_;
  for (std::size_t i = 0; i < listeners_.size() && !deaf_; ++i) {
    accept_all(listeners_[i], now_ms);
  }
}

std::vector<Address> Acceptor::addresses() const {
  std::vector<Address> all;
  for (const UniqueFd& listener : listeners_) {
    all.push_back(local_address(listener.get()));
  }
  return all;
}

void Acceptor::accept_all(const UniqueFd& listener, std::int64_t now_ms) {
  // Accepts a limited number of connections per call, so that pending connections get their turn.
  for (std::size_t i = 0; i < kMostPending; ++i) {
    UniqueFd socket = accept_one(listener.get());
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // The listener stays readable, so a poll for it would return at once.
        refusals_[""] = {kNoDescriptor, true};
        starved_ms_ = starved_ms_ < 0 ? now_ms : starved_ms_;
        deaf_ = true;
        deaf_until_ms_ = now_ms + kDeafMs;
      } else {
        starved_ms_ = -1;
      }
      return;
    }
    starved_ms_ = -1;
    const Address from = peer_address(socket.get());
    make_room();
    pending_.push_back(
        {.peer = PendingPeer(std::move(socket), Handshake::listen(self_), now_ms + kHandshakeMs),
         .host = from.host_text()});
    if (!attend(pending_.back(), now_ms)) {
      pending_.pop_back();
    }
  }
}

void Acceptor::make_room() {
  const auto is_stranger = [](const Pending& pending) { return !pending.inside; };
  const auto strangers = std::count_if(pending_.begin(), pending_.end(), is_stranger);
  if (strangers >= static_cast<std::ptrdiff_t>(kMostPending)) {
    auto oldest = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& pending) {
      return is_stranger(pending) && !pending.peer.shake().has_greeted();
    });
    if (oldest == pending_.end()) {
      oldest = std::find_if(pending_.begin(), pending_.end(), is_stranger);
    }
    turn_away(*oldest, "was dropped to make room for others before it had identified itself");
    pending_.erase(oldest);
  }
}

bool Acceptor::attend(Pending& pending, std::int64_t now_ms) {
  Handshake& shake = pending.peer.shake();
  // A peer that is late has given up, so its earlier messages are void.
  if (now_ms >= pending.peer.deadline_ms()) {
    turn_away(pending, "did not authenticate in time");
    return false;
  }
  bool there = pending.peer.step();
  if (shake.state() == Handshake::State::admitting) {
    pending.inside = inside_.emplace(shake.peer().peer, shake.peer().stream).second;
    shake.admit(pending.inside ? HandshakeRefusal::none : HandshakeRefusal::duplicate);
    // Set here, before the connection is used, and not earlier for every stranger.
    const int socket = pending.peer.descriptor();
    apply(socket, options_, peer_address(socket).is_loopback());
    pending.peer.wait_until(now_ms + kProvedMs);  // for TLS, while others are served as well
    there = pending.peer.step();
  }
  if (shake.state() == Handshake::State::refused) {
    turn_away(pending, shake.problem());
    return false;
  }
  if (pending.peer.finished()) {
    admitted_.push_back({.peer = shake.peer(), .socket = pending.peer.take()});
    return false;
  }
  if (!there && pending.peer.is_silent()) {
    return false;  // it only probed whether anybody listens: nothing to report
  }
  if (!there) {
    if (pending.inside || shake.is_of_the_token()) {
      lost_.push_back(shake.peer().peer);
    }
    turn_away(pending, !pending.peer.tls_problem().empty() ? pending.peer.tls_problem()
                       : pending.inside ? "closed the connection before it was admitted"
                                        : "closed the connection before it had authenticated");
    return false;
  }
  return true;
}

// Refuses a peer, which may try again.
void Acceptor::turn_away(const Pending& pending, const std::string& why) {
  if (pending.inside) {
    let_again(pending.peer.shake().peer());
  }
  note(pending, why);
}

void Acceptor::note(const Pending& pending, const std::string& why) {
  const Handshake& shake = pending.peer.shake();
  const bool knows_peer = shake.knows_peer();
  const bool in_words =
      knows_peer && shake.is_of_job() && shake.state() == Handshake::State::refused;
  const auto found = refusals_.find(pending.host);
  if (found == refusals_.end() && refusals_.size() < kMostRefusals) {
    refusals_[pending.host] = {pending.host + ": " + why, knows_peer, in_words};
  } else if (found != refusals_.end() && knows_peer && !found->second.knows_peer) {
    found->second = {pending.host + ": " + why, true, in_words};
  }
}

bool Acceptor::has_refused_a_rank() const {
  return std::any_of(refusals_.begin(), refusals_.end(),
                     [](const auto& line) { return line.second.in_words; });
}

void Acceptor::add_events(std::vector<pollfd>& entries) const {
  for (std::size_t i = 0; i < listeners_.size() && !deaf_; ++i) {
    entries.push_back({listeners_[i].get(), POLLIN, 0});
  }
  for (const Pending& pending : pending_) {
    entries.push_back({pending.peer.descriptor(), pending.peer.events(), 0});
  }
}

std::int64_t Acceptor::next_deadline_ms() const {
  // Looks at all deadlines: a rank that has proved its identity gets more time and keeps its place,
  // so the first in line need not have the earliest deadline.
  std::int64_t first_ms = -1;
  for (const auto& pending : pending_) {
    const std::int64_t ms = pending.peer.deadline_ms();
    first_ms = first_ms < 0 ? ms : std::min(first_ms, ms);
  }
  return deaf_ && (first_ms < 0 || deaf_until_ms_ < first_ms) ? deaf_until_ms_ : first_ms;
}

std::vector<Admitted> Acceptor::take_admitted() {
  return std::exchange(admitted_, {});
}

std::vector<std::string> Acceptor::refusals() const {
  std::vector<std::string> lines;
  for (const auto& [host, line] : refusals_) {
    lines.push_back(line.text);
  }
  return lines;
}

}  // namespace unisono::tcp
