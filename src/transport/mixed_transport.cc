#include "transport/mixed_transport.h"

#include <algorithm>
#include <utility>

namespace unisono::transport {

MixedTransport::MixedTransport(std::vector<std::unique_ptr<Transport>> transports,
                               std::vector<Place> places, int rank)
    : transports_(std::move(transports)),
      places_(std::move(places)),
      rank_(rank),
      limits_{.inline_bytes = SIZE_MAX, .slot_bytes = SIZE_MAX} {
  for (const auto& one : transports_) {
    limits_.inline_bytes = std::min(limits_.inline_bytes, one->limits().inline_bytes);
    limits_.slot_bytes = std::min(limits_.slot_bytes, one->limits().slot_bytes);
    limits_.share_bytes = std::min(limits_.share_bytes, one->limits().share_bytes);
    limits_.through_kernel |= one->limits().through_kernel;
  }
}

bool MixedTransport::can_share(int lane, const void* data, std::size_t bytes) noexcept {
  if (lane != kEveryLane) {
    const Place* const to = place(lane);
    return to != nullptr && to->transport->can_share(to->rank, data, bytes);
  }
  return std::all_of(transports_.begin(), transports_.end(),
                     [&](const auto& one) { return one->can_share(kEveryLane, data, bytes); });
}

bool MixedTransport::flush(int lane) noexcept {
  if (lane != kEveryLane) {
    const Place* const to = place(lane);
    return to == nullptr || to->transport->flush(to->rank);
  }
  bool all = true;
  for (const auto& one : transports_) {
    all &= one->flush(kEveryLane);
  }
  return all;
}

bool MixedTransport::reclaim() noexcept {
  bool all = true;
  for (const auto& one : transports_) {
    all &= one->reclaim();
  }
  return all;
}

void MixedTransport::close() noexcept {
  for (const auto& one : transports_) {
    one->close();
  }
}

void MixedTransport::abandon() noexcept {
  for (const auto& one : transports_) {
    one->abandon();
  }
}

}  // namespace unisono::transport
