#include "chaos/relay_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "transport/tcp/socket.h"

namespace unisono::chaos {
namespace {

// Until a peer has said which rank it means, and that rank answers.
constexpr std::int64_t kPatienceMs = 2000;
constexpr std::size_t kMostPending = 256;
constexpr int kSweepMs = 200;  // how soon lines that are over are forgotten

std::int64_t clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// One step of Steele, Lea and Flood's SplitMix64, so that links with similar seeds behave
// differently.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t with) {
  std::uint64_t z = seed + (with + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// A thread that no signal of the process goes to.
template <typename Body>
std::thread quiet_thread(const Body& body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(body);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

RelayServer::RelayServer(const tcp::Address& address, const Options& link)
    : listener_(tcp::listen_at(address)),
      place_{.address = tcp::local_address(listener_.get()), .key = random_hex(16)},
      link_(link),
      bell_(::eventfd(0, EFD_CLOEXEC)),
      thread_(quiet_thread([this] { run(); })) {}

RelayServer::~RelayServer() {
  stops_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = ::write(bell_.get(), &one, sizeof(one));
  thread_.join();
}

void RelayServer::reset(int rank) {
  const std::lock_guard lock(mutex_);
  for (const Line& line : lines_) {
    if (line.from == rank || line.to == rank) {
      line.relay->reset();
    }
  }
}

void RelayServer::run() {
  while (!stops_) {
    std::vector<pollfd> entries{{bell_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const PendingPeer& peer : pending_) {
      entries.push_back(peer.onward ? pollfd{peer.onward.get(), POLLOUT, 0}
                                    : pollfd{peer.socket.get(), POLLIN, 0});
    }
    ::poll(entries.data(), entries.size(), kSweepMs);
    const std::int64_t now_ms = clock_ms();
    auto entry = entries.begin() + 2;
    for (auto peer = pending_.begin(); peer != pending_.end(); ++entry) {
      const bool waits = entry->revents == 0 ? now_ms < peer->deadline_ms : attend(*peer);
      peer = waits ? std::next(peer) : pending_.erase(peer);
    }
    accept_all(now_ms);
    const std::lock_guard lock(mutex_);
    lines_.remove_if([](const Line& line) { return line.relay->is_over(); });
  }
}

void RelayServer::accept_all(std::int64_t now_ms) {
  while (UniqueFd socket = tcp::accept_one(listener_.get())) {
    if (pending_.size() == kMostPending) {
      pending_.pop_front();
    }
    tcp::apply(socket.get(), {}, place_.address.is_loopback());
    pending_.push_back({.socket = std::move(socket), .deadline_ms = now_ms + kPatienceMs});
  }
}

bool RelayServer::attend(PendingPeer& peer) {
  if (!peer.onward) {
    return hear(peer);
  }
  if (tcp::connect_error(peer.onward.get()) == 0) {
    connect(peer);
  }
  return false;
}

// Reads the request and not a byte further: what follows is for the other rank.
bool RelayServer::hear(PendingPeer& peer) const {
  std::array<char, tcp::kMostRelayRequest> buffer{};
  const ssize_t seen =
      ::recv(peer.socket.get(), buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
  if (seen <= 0) {
    return seen < 0 && (errno == EAGAIN || errno == EINTR);
  }
  const std::string_view text(buffer.data(), static_cast<std::size_t>(seen));
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    return text.size() < buffer.size();
  }
  const Parsed<tcp::RelayRequest> request = tcp::parse_relay_request(text.substr(0, end));
  if (!request || request.value->key != place_.key) {
    return false;
  }
  ::recv(peer.socket.get(), buffer.data(), end + 1, MSG_DONTWAIT);
  peer.request = *request.value;
  peer.onward = tcp::begin_connect(peer.request.address, nullptr, {});
  return static_cast<bool>(peer.onward);
}

void RelayServer::connect(PendingPeer& peer) {
  const tcp::RelayRequest& who = peer.request;
  RelayOptions options{.link = link_};
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(who.from), static_cast<std::uint64_t>(who.to),
        static_cast<std::uint64_t>(who.stream), dialled_[{who.from, who.to, who.stream}]++}) {
    options.link.seed = mixed(options.link.seed, part);
  }
  const std::lock_guard lock(mutex_);
  lines_.push_back(
      {.from = who.from,
       .to = who.to,
       .relay = std::make_unique<Relay>(std::move(peer.socket), std::move(peer.onward), options)});
}

}  // namespace unisono::chaos
