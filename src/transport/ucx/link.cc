#include "transport/ucx/link.h"

namespace unisono::ucx {

bool Shared::progress() noexcept {
  const bool advanced = worker->progress();
  while (!announced.empty()) {
    UcxLane* const lane = announced.back();
    announced.pop_back();
    lane->inbox->receive_ahead(*lane);
  }
  return advanced;
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

}  // namespace unisono::ucx
