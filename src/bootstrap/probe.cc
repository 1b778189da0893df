#include "bootstrap/probe.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "bootstrap/end_reason.h"
#include "transport/tcp/socket.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::int64_t kProbeMs = 100;
// An answer may take longer than the limit, so after each round without an answer the limit
// doubles.
constexpr std::size_t kMostDoublings = 3;
// A host counts as gone after this time and this many rounds without an answer. The system of a
// live host answers, whatever its processes do.
constexpr std::int64_t kGoneMs = 1500;
constexpr std::size_t kGoneRounds = 3;
// The discard port. Almost nobody listens there, and a system refuses the connection at once.
constexpr int kOtherPort = 9;

std::vector<Address> beside(std::vector<Address> addresses) {
  for (Address& address : addresses) {
    address = address.with_port(kOtherPort);
  }
  return addresses;
}

[[noreturn]] void throw_gone(int self, int rank, const std::string& how) {
  const std::string who = "rank " + std::to_string(rank);
  throw Error(ErrorCode::peer_lost,
              "rank " + std::to_string(self) + " lost " + who + " during the rendezvous: " +
                  comm::EndReasonReader().end_and_advice({.process = rank, .how = how},
                                                         "look at the last output of " + who),
              {.rank = self, .peer = rank});
}

}  // namespace

void Probe::step(std::int64_t now_ms) {
  if (!socket_ && now_ms >= next_ms_) {
    next_ms_ = now_ms + (kProbeMs << std::min(unanswered_rounds(), kMostDoublings));
    begun_ms_ = now_ms;
    socket_ = begin_connect(to_[tried_ % to_.size()], nullptr, {});
    if (!socket_) {
      end(now_ms, errno);
    }
  }
  if (!socket_) {
    return;
  }
  if (!is_connecting(socket_.get())) {
    end(now_ms, connect_error(socket_.get()));
  } else if (now_ms >= next_ms_) {
    end(now_ms, ETIMEDOUT);
  }
}

void Probe::end(std::int64_t now_ms, int error) {
  socket_.reset();
  ++tried_;
  closed_ = error == ECONNREFUSED ? closed_ + 1 : 0;
  if (!is_no_answer(error)) {
    unanswered_ = 0;
  } else if (unanswered_++ == 0) {
    unanswered_ms_ = begun_ms_;
  }
  next_ms_ = closed_ > 0 && closed_ < to_.size() ? now_ms : now_ms + kProbeMs;
}

void Probe::add_events(std::vector<pollfd>& entries) const {
  if (socket_) {
    entries.push_back({socket_.get(), POLLOUT, 0});
  }
}

HostMonitor::HostMonitor(const std::vector<Address>& of) : there_(of), beside_(beside(of)) {}

void HostMonitor::step(std::int64_t now_ms) {
  there_.step(now_ms);
  looks_beside_ = is_in_doubt(now_ms);
  if (looks_beside_) {
    beside_.step(now_ms);
  }
}

bool HostMonitor::host_is_gone(std::int64_t now_ms) const {
  const auto is_gone = [now_ms](const Probe& probe) {
    return probe.unanswered_for_ms(now_ms) >= kGoneMs && probe.unanswered_rounds() >= kGoneRounds;
  };
  return is_gone(there_) && is_gone(beside_);
}

void HostMonitor::add_events(std::vector<pollfd>& entries) const {
  there_.add_events(entries);
  if (looks_beside_) {
    beside_.add_events(entries);
  }
}

std::int64_t HostMonitor::next_ms() const {
  return looks_beside_ ? std::min(there_.next_ms(), beside_.next_ms()) : there_.next_ms();
}

void throw_lost(int self, int rank, const Address& address) {
  throw_gone(self, rank, "nobody listens at " + address.text() + " any more");
}

void throw_vanished(int self, int rank, const Address& address) {
  throw_gone(self, rank,
             "nothing answers at " + address.text() +
                 " any more: its host is down, or a cable or a firewall blocks the way");
}

}  // namespace unisono::tcp
