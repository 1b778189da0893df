#include "transport/ucx/connections.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/secret.h"
#include "transport/tcp/connections.h"
#include "unisono/error.hpp"

namespace unisono::ucx {
namespace {

// One of two connections may be heard to be dead before the other: after so long it is a loss.
constexpr std::int64_t kOddUs = 1'000'000;
// An introduction is the pass, one byte that says whether UCX can lose peers there, the address.
constexpr std::size_t kPassBytes = sizeof(std::uint64_t);
constexpr std::size_t kHeadBytes = kPassBytes + 1;

std::int64_t now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

std::unique_ptr<transport::IntroducedNetwork> create(int rank, int ranks, int silence_ms) {
  return std::make_unique<UcxConnections>(rank, ranks, silence_ms);
}

UcxConnections::UcxConnections(int rank, int ranks, int silence_ms)
    : rank_(rank),
      silence_ms_(silence_ms),
      worker_(rank, ranks),
      links_(static_cast<std::size_t>(ranks)) {
  shared_.worker = &worker_;
  worker_.handle(kPacked, on_packed, this);
  worker_.handle(kPlain, on_plain, this);
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    if (static_cast<int>(peer) == rank) {
      continue;
    }
    std::uint64_t pass = 0;
    fill_random(std::as_writable_bytes(std::span(&pass, 1)));
    links_[peer].link = std::make_unique<UcxLink>(static_cast<int>(peer), pass, &shared_);
  }
}

UcxConnections::~UcxConnections() {
  const std::lock_guard lock(mutex_);
  shared_.arrived = nullptr;
  for (Entry& entry : links_) {
    if (entry.is_peer && !entry.link->inbox().is_greeted()) {
      worker_.abandon();  // the same where it tidies up
    }
  }
  for (Entry& entry : links_) {
    if (entry.is_peer) {
      entry.link->shut(true);
    }
  }
}

std::string UcxConnections::introduction(int peer) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t pass = links_[static_cast<std::size_t>(peer)].link->pass();
  std::string text(reinterpret_cast<const char*>(&pass), kPassBytes);
  text += worker_.can_lose_peers() ? '\1' : '\0';
  return text + worker_.address();
}

void UcxConnections::meet(tcp::Channels channels, const std::vector<std::string>& introductions) {
  std::vector<std::size_t> peers;
  for (std::size_t peer = 0; peer < channels.size(); ++peer) {
    if (!channels[peer].empty()) {
      peers.push_back(peer);
    }
  }
  control_ = std::make_unique<tcp::Connections>(rank_, std::move(channels),
                                                tcp::ConnectionsOptions{.silence_ms = silence_ms_});
  control_->wake_for(worker_.descriptor());
  const std::lock_guard lock(mutex_);
  shared_.arrived = [this] { control_->note_arrival(); };
  for (const std::size_t peer : peers) {
    const std::string& text = introductions[peer];
    links_[peer].is_peer = true;
    if (text.size() <= kHeadBytes) {
      links_[peer].link->mark_broken(UCS_ERR_CONNECTION_RESET);
      continue;
    }
    Introduction known{.loses = text[kPassBytes] == '\1', .address = text.substr(kHeadBytes)};
    std::memcpy(&known.pass, text.data(), kPassBytes);
    links_[peer].link->connect(rank_, known);
  }
}

// Where a peer goes while they connect, UCX before 1.14 may end the process that goes on with it:
// so the other connections are asked first, and then UCX is left alone.
std::vector<int> UcxConnections::missing() {
  control_->progress();
  const bool lost = static_cast<bool>(control_->first_loss());
  const std::lock_guard lock(mutex_);
  if (!lost) {
    progress_locked();
  }
  std::vector<int> ranks;
  for (Entry& entry : links_) {
    if (!entry.is_peer) {
      continue;
    }
    if (!entry.link->inbox().is_greeted() || !entry.link->is_flushed()) {
      ranks.push_back(entry.link->peer());
    }
  }
  if (lost && !ranks.empty()) {
    worker_.abandon();
  }
  return ranks;
}

ucs_status_t UcxConnections::on_packed(void* context, const void* /*header*/,
                                       std::size_t /*header_bytes*/, void* data, std::size_t bytes,
                                       const ucp_am_recv_param_t* param) {
  PeerMessage arrival;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || bytes < sizeof(MessageHeader)) {
    return UCS_OK;  // nobody of ours sends that
  }
  std::memcpy(&arrival.header, data, sizeof(MessageHeader));
  arrival.data = static_cast<std::byte*>(data) + sizeof(MessageHeader);
  arrival.bytes = bytes - sizeof(MessageHeader);
  return static_cast<UcxConnections*>(context)->dispatch(arrival);
}

ucs_status_t UcxConnections::on_plain(void* context, const void* header, std::size_t header_bytes,
                                      void* data, std::size_t bytes,
                                      const ucp_am_recv_param_t* param) {
  PeerMessage arrival;
  if (header_bytes != sizeof(MessageHeader)) {
    return UCS_OK;
  }
  std::memcpy(&arrival.header, header, sizeof(MessageHeader));
  arrival.data = static_cast<std::byte*>(data);
  arrival.bytes = bytes;
  arrival.announced = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  arrival.stays = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  return static_cast<UcxConnections*>(context)->dispatch(arrival);
}

// A message whose sender does not know the pass is dropped.
ucs_status_t UcxConnections::dispatch(const PeerMessage& arrival) noexcept {
  const std::size_t peer = arrival.header.from >> 8;
  UcxLink* const link = peer < links_.size() ? links_[peer].link.get() : nullptr;
  if (link == nullptr || arrival.header.pass != link->pass()) {
    return UCS_OK;
  }
  ++shared_.traffic.come;
  return link->inbox().take(arrival);
}

bool UcxConnections::progress_locked() noexcept {
  const bool advanced = shared_.progress();
  for (Entry& entry : links_) {
    if (entry.is_peer) {
      entry.link->outbox().retry();
    }
  }
  return advanced;
}

void UcxConnections::progress_for(const UcxLane* lane) noexcept {
  shared_.own = lane;
  shared_.progress();
  lane->link->outbox().retry();
  shared_.own = nullptr;
}

UcxTraffic UcxConnections::traffic() noexcept {
  const std::lock_guard lock(mutex_);
  return shared_.traffic;
}

bool UcxConnections::is_receiving() noexcept {
  const std::lock_guard lock(mutex_);
  return std::any_of(links_.begin(), links_.end(), [](const Entry& entry) {
    return entry.link != nullptr && entry.link->inbox().is_receiving();
  });
}

void UcxConnections::begin_epoch(std::uint32_t epoch) noexcept {
  control_->begin_epoch(epoch);
  const std::lock_guard lock(mutex_);
  epoch_ = epoch;
  for (Entry& entry : links_) {
    if (entry.is_peer) {
      entry.link->retire_before(epoch);
    }
  }
}

bool UcxConnections::progress() noexcept {
  const bool came = control_->progress();
  const std::lock_guard lock(mutex_);
  return progress_locked() || came;
}

bool UcxConnections::flush() noexcept {
  const bool control = control_->flush();
  const std::lock_guard lock(mutex_);
  progress_locked();
  return control;
}

bool UcxConnections::wait(int timeout_us) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (progress_locked() || !worker_.arm()) {
      return true;
    }
  }
  return control_->wait(timeout_us);
}

transport::Loss UcxConnections::first_loss() {
  if (transport::Loss loss = control_->first_loss()) {
    return loss;
  }
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    if (transport::Loss loss = loss_of(static_cast<int>(rank))) {
      return loss;
    }
  }
  return {};
}

transport::Loss UcxConnections::loss_of(int rank) {
  if (transport::Loss loss = control_->loss_of(rank)) {
    return loss;
  }
  const std::lock_guard lock(mutex_);
  const Entry& entry = links_[static_cast<std::size_t>(rank)];
  if (!entry.lost) {
    return {};
  }
  using How = transport::Loss::Kind;
  const Endpoint& endpoint = entry.link->endpoint();
  return {.peer = rank,
          .kind = endpoint.is_damaged()     ? How::damaged
                  : endpoint.lacks_memory() ? How::given_up
                                            : How::broken,
          .how = endpoint.why_broken()};
}

// Its last word over UCX comes behind all that it has sent. Where only the other connection tells
// of it, there is nothing more to wait for after a while.
bool UcxConnections::has_left(int rank) noexcept {
  const bool said = control_->has_left(rank);
  const std::lock_guard lock(mutex_);
  const Entry& entry = links_[static_cast<std::size_t>(rank)];
  return entry.is_peer && (entry.link->endpoint().has_left() ||
                           (said && (entry.link->endpoint().is_broken() ||
                                     (entry.odd_us != 0 && now_us() - entry.odd_us > kOddUs))));
}

void UcxConnections::look_for_losses() noexcept {
  control_->look_for_losses();
  const std::int64_t now = now_us();
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    Entry& entry = links_[rank];
    if (!entry.is_peer) {
      continue;
    }
    const bool left = control_->has_left(static_cast<int>(rank));
    const std::lock_guard lock(mutex_);
    const bool odd =
        !entry.link->endpoint().has_left() && (left || entry.link->endpoint().is_broken());
    entry.odd_us = !odd ? 0 : entry.odd_us == 0 ? now : entry.odd_us;
    const bool late = odd && now - entry.odd_us > kOddUs;
    const bool lost = entry.link->endpoint().is_damaged() ||
                      (late && !left && entry.link->endpoint().is_broken());
    if (lost && !entry.lost) {
      entry.lost = true;
      shared_.changed();
    } else if (late && left) {
      shared_.changed();  // has_left() says so now
    }
  }
}

void UcxConnections::leave() noexcept {
  control_->leave();
  const std::lock_guard lock(mutex_);
  for (Entry& entry : links_) {
    if (entry.is_peer) {
      entry.link->outbox().send_leave();
    }
  }
}

bool UcxConnections::delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept {
  bool all = true;
  {
    const std::lock_guard lock(mutex_);
    progress_locked();
    for (Entry& entry : links_) {
      all = all && (!entry.is_peer || lost(entry.link->peer()) || entry.link->is_flushed());
    }
  }
  return control_->delivered(lost, silence_ms) && all;
}

void UcxConnections::wake() noexcept {
  control_->wake();
}

int UcxConnections::waker() const noexcept {
  return control_->waker();
}

int UcxConnections::events() const noexcept {
  return control_->events() + shared_.events.load(std::memory_order_acquire);
}

std::optional<transport::Network::Abort> UcxConnections::aborted() noexcept {
  return control_->aborted();
}

void UcxConnections::abort(std::string_view reason) noexcept {
  control_->abort(reason);
}

}  // namespace unisono::ucx
