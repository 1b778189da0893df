#include "bootstrap/dial.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace unisono::tcp {
namespace {

constexpr std::int64_t kLongestPauseMs = 100;
// If a listener sends nothing for this time, it may not be one of the job's ranks; dial again.
constexpr std::int64_t kAnswerMs = 2 * kHandshakeMs;

bool is_final(HandshakeRefusal refusal) {
  return refusal == HandshakeRefusal::token || refusal == HandshakeRefusal::version ||
         refusal == HandshakeRefusal::size || refusal == HandshakeRefusal::protection;
}

}  // namespace

void Dial::step(std::int64_t now_ms) {
  if (!attempt_ && now_ms >= next_ms_) {
    begin(now_ms);
  }
  if (attempt_ && (!attempt_->connecting || is_connected(now_ms))) {
    shake(now_ms);
  }
}

void Dial::begin(std::int64_t now_ms) {
  UniqueFd socket = begin_connect(options_.relay ? options_.relay->address : to(),
                                  options_.from ? &*options_.from : nullptr, options_.socket);
  if (!socket) {
    return fail_with(now_ms, errno);
  }
  starved_ms_ = -1;
  attempt_.emplace(Attempt{.peer = PendingPeer(std::move(socket), Handshake::dial(self_, wanted_),
                                               now_ms + patience_ms_)});
}

bool Dial::is_connected(std::int64_t now_ms) {
  PendingPeer& peer = attempt_->peer;
  if (is_connecting(peer.descriptor())) {
    if (now_ms >= peer.deadline_ms()) {
      closed_ = 0;
      unanswered_ = true;
      retry(now_ms, "nothing answers there: a firewall drops the packets, or the address is wrong");
    }
    return false;
  }
  attempt_->connecting = false;
  if (const int error = connect_error(peer.descriptor()); error != 0) {
    fail_with(now_ms, error);
    return false;
  }
  closed_ = 0;
  unanswered_ = false;
  peer.wait_until(now_ms + kAnswerMs);
  if (options_.relay && !ask_relay()) {
    retry(now_ms, "the relay closed the connection");
    return false;
  }
  return true;
}

void Dial::shake(std::int64_t now_ms) {
  PendingPeer& peer = attempt_->peer;
  const bool there = peer.step();
  const Handshake& shake = peer.shake();
  if (!attempt_->proved && shake.has_checked_peer()) {
    attempt_->proved = true;  // it is the wanted rank, whose computing may take time
    peer.wait_until(now_ms + kProvedMs);
  }
  if (shake.state() == Handshake::State::refused) {
    // Another process may have this address before the wanted rank listens, or after it has ended.
    const bool again = refused_ms_ >= 0 && is_final(shake.refusal());
    refused_ms_ = !is_final(shake.refusal()) ? -1 : again ? refused_ms_ : now_ms;
    obstacle_ = shake.problem();
    return retry(now_ms, obstacle_);
  }
  if (peer.finished()) {
    done_ = peer.take();
    attempt_.reset();
  } else if (!there || now_ms >= peer.deadline_ms()) {
    const std::string problem = peer.tls_problem();
    if (!problem.empty() && refused_ms_ < 0) {
      refused_ms_ = now_ms;  // a host that is not trusted now will hardly be trusted soon
      obstacle_ = problem;
    }
    retry(now_ms, !problem.empty() ? problem
                  : there          ? "it does not answer"
                                   : "it closed the connection");
  }
}

bool Dial::ask_relay() const {
  const std::string text = to_text(RelayRequest{.key = options_.relay->key,
                                                .from = self_.rank,
                                                .to = wanted_.peer,
                                                .stream = wanted_.stream,
                                                .address = to()});
  const ssize_t put = ::send(attempt_->peer.descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
  return put == static_cast<ssize_t>(text.size());  // the first bytes always fit into a socket
}

void Dial::fail_with(std::int64_t now_ms, int error) {
  closed_ = error == ECONNREFUSED ? closed_ + 1 : 0;
  unanswered_ = is_no_answer(error);
  if (error == EMFILE || error == ENFILE) {
    starved_ms_ = starved_ms_ < 0 ? now_ms : starved_ms_;
    return retry(now_ms, kNoDescriptor);
  }
  retry(now_ms, std::strerror(error));  // NOLINT(concurrency-mt-unsafe)
}

void Dial::retry(std::int64_t now_ms, const std::string& why) {
  if (refused_ms_ < 0) {  // a verbal refusal says more than a port that closes later
    obstacle_ = why;
  }
  attempt_.reset();
  if (++tried_ % to_.size() != 0) {
    next_ms_ = now_ms;  // tries its next address
    return;
  }
  next_ms_ = now_ms + pause_ms_;
  pause_ms_ = std::min(2 * pause_ms_, kLongestPauseMs);
  patience_ms_ = std::min(2 * patience_ms_, kAnswerMs);
}

void Dial::add_events(std::vector<pollfd>& entries) const {
  if (attempt_) {
    const PendingPeer& peer = attempt_->peer;
    entries.push_back(
        {peer.descriptor(), attempt_->connecting ? static_cast<short>(POLLOUT) : peer.events(), 0});
  }
}

}  // namespace unisono::tcp
