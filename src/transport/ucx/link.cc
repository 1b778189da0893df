#include "transport/ucx/link.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace unisono::ucx {
namespace {

// How long a link that is shut waits for UCX: for the peer, or only for its own requests.
constexpr std::chrono::milliseconds kGently(200);
constexpr std::chrono::milliseconds kForced(2000);

}  // namespace

bool Shared::progress() noexcept {
  const bool advanced = worker->progress();
  while (!announced.empty()) {
    Lane* const lane = announced.back();
    announced.pop_back();
    lane->link->receive_ahead(*lane);
  }
  return advanced;
}

void Link::connect(int rank, const Introduction& peer) noexcept {
  my_pass_ = peer.pass;
  can_be_lost_ = peer.loses && shared_->worker->can_lose_peers();
  from_ = static_cast<std::uint32_t>(rank) << 8;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = can_be_lost_ ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = [](void* link, ucp_ep_h, ucs_status_t status) {
    static_cast<Link*>(link)->mark_broken(status);
  };
  params.err_handler.arg = this;
  const UcxApi& api = shared_->worker->api();
  if (const ucs_status_t status = api.ep_create(shared_->worker->get(), &params, &endpoint_);
      status != UCS_OK) {
    endpoint_ = nullptr;
    return mark_broken(status);
  }
  hello_.link = this;
  leave_.link = this;
  post_word(hello_, header_of(nullptr, Kind::hello));
}

Lane* Link::add_lane(const LaneKey& key) noexcept {
  try {
    auto lane = std::make_unique<Lane>(this, key);
    if (lane->in_memory.data() == nullptr || lane->out_memory.data() == nullptr) {
      return nullptr;
    }
    closing_.reserve(closing_.size() + lanes_.size() + 1);  // so that closing needs no memory
    latest_ = lanes_.emplace(key, std::move(lane)).first->second.get();
    ++early_;
    return latest_;
  } catch (...) {
    return nullptr;
  }
}

Lane* Link::open(const LaneKey& key) noexcept {
  const auto early = lanes_.find(key);
  Lane* const lane = early != lanes_.end() ? early->second.get() : add_lane(key);
  if (lane != nullptr && !lane->open) {
    lane->open = true;
    --early_;
  }
  return lane;
}

// nullptr: the message is to be dropped, or the link has failed.
Lane* Link::lane_of(const Header& header) noexcept {
  const LaneKey key{.group = header.group, .epoch = header.epoch};
  if (latest_ != nullptr && latest_->key == key) {
    return latest_;
  }
  if (const auto found = lanes_.find(key); found != lanes_.end()) {
    return latest_ = found->second.get();
  }
  const auto known =
      closed_.begin() + static_cast<std::ptrdiff_t>(std::min(closed_count_, tcp::kClosedLanes));
  if (header.epoch < epoch_ || std::find(closed_.begin(), known, key) != known) {
    return nullptr;
  }
  if (early_ >= tcp::kMostEarlyLanes) {
    damaged("too many groups that this rank does not know");
    return nullptr;
  }
  Lane* const lane = add_lane(key);
  if (lane == nullptr) {
    mark_broken(UCS_ERR_NO_MEMORY);
  }
  return lane;
}

void Link::close(Lane* lane) noexcept {
  const bool looks =
      std::any_of(lane->out.begin(), lane->out.end(),
                  [](const OutMessage& one) {
                    return !one.done && one.storage == OutMessage::Storage::shared;
                  }) ||
      std::any_of(lane->in.begin(), lane->in.end(), [](const InMessage& one) {
        return one.state == InMessage::State::coming && one.storage == InMessage::Storage::reader;
      });
  if (looks) {
    mark_broken(UCS_ERR_CANCELED);
    shut(false);
  }
  if (lane->reserved != nullptr) {
    shared_->out_slots.give_back(std::exchange(lane->reserved, nullptr));
  }
  for (InMessage& message : lane->in) {
    if (message.state != InMessage::State::coming) {
      forget(*lane, message);
    }
  }
  credits_due_ -= lane->credit_due ? 1 : 0;
  lane->credit_due = false;
  lane->closed = true;
  closed_[closed_count_++ % tcp::kClosedLanes] = lane->key;
  latest_ = latest_ == lane ? nullptr : latest_;
  const auto place = lanes_.find(lane->key);
  if (place != lanes_.end()) {
    closing_.push_back(std::move(place->second));  // add_lane() made room
    lanes_.erase(place);
  }
  finish(lane);
}

// A closed lane goes when UCX has nothing of it any more.
void Link::finish(Lane* lane) noexcept {
  if (lane->closed && lane->is_quiet()) {
    std::erase_if(closing_, [lane](const auto& one) { return one.get() == lane; });
  }
}

void Link::mark_broken(ucs_status_t status) noexcept {
  if (!broken_) {
    broken_ = true;
    status_ = status;
    shared_->changed();
  }
}

void Link::damaged(const char* detail) noexcept {
  detail_ = broken_ ? detail_ : detail;
  mark_broken(UCS_ERR_IO_ERROR);
}

std::string Link::why_broken() const {
  const std::string connection = "the connection over UCX to rank " + std::to_string(peer_);
  if (detail_ != nullptr) {
    return connection + " carried a message that must not be (" + detail_ + ")";
  }
  const std::string how = shared_->worker->api().status_string(status_);
  if (status_ == UCS_ERR_UNREACHABLE) {
    return connection + " cannot be: UCX knows no way there (" + how +
           "); both hosts need a device of one kind in one network, see UCX_TLS, UCX_NET_DEVICES "
           "and unisono doctor";
  }
  return connection + " broke: " + how;
}

bool Link::is_quiet() const noexcept {
  return words_under_way_ == 0 &&
         std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& one) { return one.second->is_quiet(); }) &&
         std::all_of(closing_.begin(), closing_.end(),
                     [](const auto& one) { return one->is_quiet(); });
}

// UCX gives back what it has of this process when the endpoint is closed; that takes calls of
// progress. Where it does not, it is left with that, and not called any more.
void Link::shut(bool gently) noexcept {
  if (endpoint_ == nullptr || shared_->worker->is_abandoned()) {
    return;
  }
  const auto progress_until = [this](std::chrono::milliseconds limit, const auto& done) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < end) {
      shared_->worker->progress();
    }
    shared_->announced.clear();  // their readers look themselves
  };
  if (gently && !broken_) {
    progress_until(kGently, [this] { return is_quiet() || broken_; });
  }
  const bool force = broken_ || !is_quiet();
  if (force && !can_be_lost_) {
    shared_->worker->abandon();
    endpoint_ = nullptr;
    return;
  }
  const UcxApi& api = shared_->worker->api();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* const closing = api.ep_close(std::exchange(endpoint_, nullptr), &param);
  progress_until(force ? kForced : kGently, [&] {
    return is_quiet() &&
           (!UCS_PTR_IS_PTR(closing) || api.request_check_status(closing) != UCS_INPROGRESS);
  });
  if (UCS_PTR_IS_PTR(closing)) {
    api.request_free(closing);
  }
  if (UCS_PTR_IS_PTR(flushing_)) {
    api.request_free(std::exchange(flushing_, nullptr));
  }
  if (!is_quiet()) {
    shared_->worker->abandon();
  }
}

bool Link::is_flushed() noexcept {
  const UcxApi& api = shared_->worker->api();
  if (broken_ || endpoint_ == nullptr) {
    return true;
  }
  return words_under_way_ == 0 &&
         (!UCS_PTR_IS_PTR(flushing_) || api.request_check_status(flushing_) != UCS_INPROGRESS);
}

void Link::send_leave() noexcept {
  if (broken_ || endpoint_ == nullptr || !leave_.done || leave_.header.from != 0) {
    return;
  }
  Header header = header_of(nullptr, Kind::leave);
  header.signature = messages_sent_;
  if (post_word(leave_, header)) {
    ucp_request_param_t param{};
    flushing_ = shared_->worker->api().ep_flush(endpoint_, &param);
  }
}

// The peer's last word may overtake what it sent before, over another device or in pieces.
void Link::note_leave() noexcept {
  if (leave_came_ && !left_ && messages_come_ >= messages_promised_ && receiving_ == 0) {
    left_ = true;
    shared_->changed();
  }
}

}  // namespace unisono::ucx
