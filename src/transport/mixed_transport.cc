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
    limits_.lane_bytes = std::max(limits_.lane_bytes, one->limits().lane_bytes);
    limits_.through_kernel |= one->limits().through_kernel;
  }
}

std::size_t MixedTransport::shareable_bytes(int lane, const void* data,
                                            std::size_t bytes) noexcept {
  if (lane != kEveryLane) {
    const Place* const to = place(lane);
    return to == nullptr ? 0 : to->transport->shareable_bytes(to->rank, data, bytes);
  }
  std::size_t least = bytes;
  for (const auto& one : transports_) {
    least = std::min(least, one->shareable_bytes(kEveryLane, data, bytes));
  }
  return least;
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
