#include "transport/ucx/connections.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/secret.h"
#include "unisono/error.hpp"

namespace unisono::ucx {
namespace {

// An introduction consists of the pass, one byte that tells whether UCX can lose peers on that
// host, and the address.
constexpr std::size_t kPassBytes = sizeof(std::uint64_t);
constexpr std::size_t kHeadBytes = kPassBytes + 1;

std::int64_t now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Parses a message whose payload follows its header. Returns nullopt if this library did not send
// it.
std::optional<PeerMessage> packed_message(void* data, std::size_t bytes,
                                          const ucp_am_recv_param_t& param) noexcept {
  if ((param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || bytes < sizeof(MessageHeader)) {
    return std::nullopt;
  }
  std::optional<PeerMessage> arrival(std::in_place);
  std::memcpy(&arrival->header, data, sizeof(MessageHeader));
  arrival->data = static_cast<std::byte*>(data) + sizeof(MessageHeader);
  arrival->bytes = bytes - sizeof(MessageHeader);
  return arrival;
}

// Parses a message whose header comes separately.
std::optional<PeerMessage> plain_message(const void* header, std::size_t header_bytes, void* data,
                                         std::size_t bytes,
                                         const ucp_am_recv_param_t& param) noexcept {
  if (header_bytes != sizeof(MessageHeader)) {
    return std::nullopt;
  }
  std::optional<PeerMessage> arrival(std::in_place);
  std::memcpy(&arrival->header, header, sizeof(MessageHeader));
  arrival->data = static_cast<std::byte*>(data);
  arrival->bytes = bytes;
  arrival->announced = (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  arrival->stays = (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  return arrival;
}

}  // namespace

std::unique_ptr<transport::IntroducedNetwork> create(int rank, int ranks) {
  return std::make_unique<UcxConnections>(rank, ranks);
}

UcxConnections::UcxConnections(int rank, int ranks)
    : rank_(rank), worker_(rank, ranks), links_(static_cast<std::size_t>(ranks)) {
  shared_.worker = &worker_;
  worker_.handle(
      kPacked,
      [](void* context, const void*, std::size_t, void* data, std::size_t bytes,
         const ucp_am_recv_param_t* param) {
        return static_cast<UcxConnections*>(context)->dispatch(packed_message(data, bytes, *param));
      },
      this);
  worker_.handle(
      kPlain,
      [](void* context, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
         const ucp_am_recv_param_t* param) {
        return static_cast<UcxConnections*>(context)->dispatch(
            plain_message(header, header_bytes, data, bytes, *param));
      },
      this);
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    if (static_cast<int>(peer) == rank) {
      continue;
    }
    std::uint64_t pass = 0;
    fill_random(std::as_writable_bytes(std::span(&pass, 1)));
    links_[peer] = std::make_unique<UcxLink>(static_cast<int>(peer), pass, &shared_);
  }
}

UcxConnections::~UcxConnections() {
  if (control_ == nullptr) {
    return;  // it has connected to no peer
  }
  const std::lock_guard lock(shared_.mutex);
  shared_.arrived = nullptr;
  for (const auto& link : links_) {
    if (link != nullptr && !link->inbox().is_greeted()) {
      worker_.abandon();  // likewise while it cleans up
    }
  }
  for (const auto& link : links_) {
    if (link != nullptr) {
      link->shut(true);
    }
  }
}

std::string UcxConnections::introduction(int peer) {
  const std::lock_guard lock(shared_.mutex);
  const std::uint64_t pass = link(peer)->pass();
  std::string text(reinterpret_cast<const char*>(&pass), kPassBytes);
  text += worker_.can_lose_peers() ? '\1' : '\0';
  return text + worker_.address();
}

void UcxConnections::meet(std::unique_ptr<transport::ControlNetwork> control,
                          const std::vector<std::string>& introductions) {
  const std::lock_guard lock(shared_.mutex);
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    if (!control->reaches(static_cast<int>(peer))) {
      links_[peer].reset();
    }
  }
  control->wake_for(worker_.descriptor());
  control_ = std::move(control);
  shared_.arrived = [this] { control_->note_arrival(); };
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    if (links_[peer] == nullptr) {
      continue;
    }
    const std::string& text = introductions[peer];
    if (text.size() <= kHeadBytes) {
      links_[peer]->mark_broken(UCS_ERR_CONNECTION_RESET);
      continue;
    }
    Introduction known{.loses = text[kPassBytes] == '\1', .address = text.substr(kHeadBytes)};
    std::memcpy(&known.pass, text.data(), kPassBytes);
    links_[peer]->connect(rank_, known);
  }
}

// If a peer leaves during the set-up, UCX before 1.14 may end a process that continues to call it.
// Therefore the TCP connections are checked first, and if a peer is gone, UCX is not called any
// more.
std::vector<int> UcxConnections::missing() {
  control_->progress();
  const bool lost = static_cast<bool>(control_->first_loss());
  const std::lock_guard lock(shared_.mutex);
  if (!lost) {
    progress_locked();
  }
  std::vector<int> ranks;
  for (const auto& link : links_) {
    if (link != nullptr && (!link->inbox().is_greeted() || !link->is_flushed())) {
      ranks.push_back(link->peer());
    }
  }
  if (lost && !ranks.empty()) {
    worker_.abandon();
  }
  return ranks;
}

// Drops messages that this library does not send, and messages whose sender does not know the pass.
ucs_status_t UcxConnections::dispatch(const std::optional<PeerMessage>& arrival) noexcept {
  const std::size_t peer = arrival ? arrival->header.from >> 8 : links_.size();
  UcxLink* const link = peer < links_.size() ? links_[peer].get() : nullptr;
  if (link == nullptr || arrival->header.pass != link->pass()) {
    return UCS_OK;
  }
  ++shared_.traffic.come;
  return link->inbox().take(*arrival);
}

bool UcxConnections::progress_locked() noexcept {
  const bool advanced = shared_.progress();
  for (const auto& link : links_) {
    if (link != nullptr) {
      link->outbox().retry();
    }
  }
  return advanced;
}

bool UcxConnections::is_receiving() noexcept {
  const std::lock_guard lock(shared_.mutex);
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) {
    return link != nullptr && link->inbox().is_receiving();
  });
}

void UcxConnections::begin_epoch(std::uint32_t epoch) noexcept {
  control_->begin_epoch(epoch);
  const std::lock_guard lock(shared_.mutex);
  epoch_ = epoch;
  for (const auto& link : links_) {
    if (link != nullptr) {
      link->retire_before(epoch);
    }
  }
}

bool UcxConnections::progress() noexcept {
  const bool came = control_->progress();
  const std::lock_guard lock(shared_.mutex);
  return progress_locked() || came;
}

bool UcxConnections::flush() noexcept {
  const bool control = control_->flush();
  const std::lock_guard lock(shared_.mutex);
  progress_locked();
  return control;
}

bool UcxConnections::wait(int timeout_us) noexcept {
  {
    const std::lock_guard lock(shared_.mutex);
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
  const std::lock_guard lock(shared_.mutex);
  const UcxLink* const to = link(rank);
  return to == nullptr ? transport::Loss{} : to->loss();
}

bool UcxConnections::has_left(int rank) noexcept {
  const bool said = control_->has_left(rank);
  const std::lock_guard lock(shared_.mutex);
  const UcxLink* const to = link(rank);
  return to != nullptr && to->has_left(now_us(), said);
}

transport::Frames UcxConnections::frames(int rank) noexcept {
  const std::lock_guard lock(shared_.mutex);
  const UcxLink* const to = link(rank);
  return to == nullptr ? transport::Frames{} : to->frames();
}

std::string UcxConnections::farewell_of(int rank) {
  return control_->farewell_of(rank);
}

void UcxConnections::look_for_losses() noexcept {
  control_->look_for_losses();
  const std::int64_t now = now_us();
  for (const auto& link : links_) {
    if (link != nullptr) {
      const bool said = control_->has_left(link->peer());
      const std::lock_guard lock(shared_.mutex);
      link->look_for_loss(now, said);
    }
  }
}

void UcxConnections::leave(std::string_view farewell) noexcept {
  control_->leave(farewell);
  const std::lock_guard lock(shared_.mutex);
  for (const auto& link : links_) {
    if (link != nullptr) {
      link->outbox().send_leave();
    }
  }
}

bool UcxConnections::delivered(const std::function<bool(int)>& lost, int silence_ms) noexcept {
  bool all = true;
  {
    const std::lock_guard lock(shared_.mutex);
    progress_locked();
    for (const auto& link : links_) {
      all = all && (link == nullptr || lost(link->peer()) || link->is_flushed());
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
