#include "transport/mixed_transport.h"

#include <algorithm>
#include <utility>

namespace unisono::transport {

MixedTransport::MixedTransport(std::vector<Place> places, int rank)
    : places_(std::move(places)),
      rank_(rank),
      limits_{.inline_bytes = SIZE_MAX, .slot_bytes = SIZE_MAX} {
  for (const Place& place : places_) {
    Transport* const one = place.transport;
    if (std::find(transports_.begin(), transports_.end(), one) == transports_.end()) {
      transports_.push_back(one);
      limits_.inline_bytes = std::min(limits_.inline_bytes, one->limits().inline_bytes);
      limits_.slot_bytes = std::min(limits_.slot_bytes, one->limits().slot_bytes);
      limits_.share_bytes = std::min(limits_.share_bytes, one->limits().share_bytes);
      limits_.through_kernel |= one->limits().through_kernel;
    }
  }
}

bool MixedTransport::can_share(int lane, const void* data, std::size_t bytes) noexcept {
  if (lane != kEveryLane) {
    const Place* const to = place(lane);
    return to != nullptr && to->transport->can_share(to->rank, data, bytes);
  }
  return std::all_of(transports_.begin(), transports_.end(),
                     [&](Transport* one) { return one->can_share(kEveryLane, data, bytes); });
}

bool MixedTransport::flush(int lane) noexcept {
  if (lane != kEveryLane) {
    const Place* const to = place(lane);
    return to == nullptr || to->transport->flush(to->rank);
  }
  bool all = true;
  for (Transport* const one : transports_) {
    all &= one->flush(kEveryLane);
  }
  return all;
}

}  // namespace unisono::transport
