#include "transport/ucx/link.h"

namespace unisono::ucx {
namespace {

// If one of the two connections detects a death, the other one has this time to detect it too.
// Afterwards the peer counts as lost.
constexpr std::int64_t kOddUs = 1'000'000;

}  // namespace

bool Shared::progress() noexcept {
  const bool advanced = worker->progress();
  while (!announced.empty()) {
    UcxLane* const lane = announced.back();
    announced.pop_back();
    lane->inbox->receive_ahead(*lane);
  }
  return advanced;
}

void Shared::progress_for(const UcxLane& lane) noexcept {
  own = &lane;
  progress();
  lane.link->outbox().retry();
  own = nullptr;
}

void UcxLink::connect(int rank, const Introduction& peer) noexcept {
  endpoint_.connect(peer);
  if (endpoint_.is_open()) {
    outbox_.greet(rank, peer.pass);
  }
}

void UcxLink::close(UcxLane* lane) noexcept {
  if (UcxOutbox::looks_at_shared(*lane) || UcxInbox::writes_to_reader(*lane)) {
    endpoint_.mark_broken(UCS_ERR_CANCELED);
    shut(false);
  }
  outbox_.close(*lane);
  inbox_.close(*lane);
  lanes_.close(lane);
}

bool UcxLink::is_flushed() const noexcept {
  return endpoint_.is_broken() || !endpoint_.is_open() ||
         (outbox_.is_quiet() && endpoint_.is_flushed());
}

void UcxLink::shut(bool gently) noexcept {
  endpoint_.shut(gently, [this] { return outbox_.is_quiet() && lanes_.is_quiet(); });
}

void UcxLink::look_for_loss(std::int64_t now_us, bool said) noexcept {
  const bool odd = !endpoint_.has_left() && (said || endpoint_.is_broken());
  odd_us_ = !odd ? 0 : odd_us_ == 0 ? now_us : odd_us_;
  const bool late = odd && now_us - odd_us_ > kOddUs;
  const bool lost = endpoint_.is_damaged() || (late && !said && endpoint_.is_broken());
  if (lost && !lost_) {
    lost_ = true;
    shared_->changed();
  } else if (late && said && !left_) {
    left_ = true;
    shared_->changed();
  }
}

transport::Loss UcxLink::loss() const {
  if (!lost_) {
    return {};
  }
  using How = transport::Loss::Kind;
  return {.peer = peer_,
          .kind = endpoint_.is_damaged()     ? How::damaged
                  : endpoint_.lacks_memory() ? How::given_up
                                             : How::broken,
          .how = endpoint_.why_broken()};
}

// The peer's last message over UCX comes after everything that the peer has sent. If only the TCP
// connection reports that the peer leaves, the link waits for the message for at most kOddUs.
bool UcxLink::has_left(std::int64_t now_us, bool said) const noexcept {
  return endpoint_.has_left() ||
         (said && (endpoint_.is_broken() || (odd_us_ != 0 && now_us - odd_us_ > kOddUs)));
}

}  // namespace unisono::ucx
