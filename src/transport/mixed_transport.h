// The lanes of a group with ranks on several hosts. Lanes to ranks on this host use one transport,
// and all other lanes use another transport. There is no multicast, because a multicast would have
// to use both transports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/transport.h"

namespace unisono::transport {

class MixedTransport final : public Transport {
 public:
  // The transport that leads to a rank of the group, and the rank's number in that transport.
  struct Place {
    Transport* transport = nullptr;
    int rank = 0;
  };
  // `places` has one entry per rank of the group. `rank` is this rank's number in the group.
  MixedTransport(std::vector<std::unique_ptr<Transport>> transports, std::vector<Place> places,
                 int rank);

  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return static_cast<int>(places_.size()); }
  const Limits& limits() const noexcept override { return limits_; }
  bool peek(int lane, Incoming& message) noexcept override {
    const Place* const from = place(lane);
    return from != nullptr && from->transport->peek(from->rank, message);
  }
  bool peek_unread(int lane, Incoming& message) noexcept override {
    const Place* const from = place(lane);
    return from != nullptr && from->transport->peek_unread(from->rank, message);
  }
  void release(int lane) noexcept override {
    if (const Place* const from = place(lane)) {
      from->transport->release(from->rank);
    }
  }
  bool send(int lane, const void* data, std::size_t bytes,
            std::uint64_t signature) noexcept override {
    const Place* const to = place(lane);
    return to != nullptr && to->transport->send(to->rank, data, bytes, signature);
  }
  std::byte* reserve(int lane, std::size_t bytes) noexcept override {
    const Place* const to = place(lane);
    return to == nullptr ? nullptr : to->transport->reserve(to->rank, bytes);
  }
  void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept override {
    if (const Place* const to = place(lane)) {
      to->transport->commit(to->rank, bytes, signature);
    }
  }
  void fill(int lane, std::byte* room, const void* data, std::size_t bytes) noexcept override {
    if (const Place* const to = place(lane)) {
      to->transport->fill(to->rank, room, data, bytes);
    }
  }
  kernels::Store store(int lane, std::size_t bytes) const noexcept override {
    const Place* const to = place(lane);
    return to == nullptr ? kernels::Store::cached : to->transport->store(to->rank, bytes);
  }
  std::size_t shareable_bytes(int lane, const void* data, std::size_t bytes) noexcept override;
  bool share(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override {
    const Place* const to = place(lane);
    return to != nullptr && to->transport->share(to->rank, data, bytes, signature);
  }
  bool can_offer(int lane, const void* data, std::size_t bytes) noexcept override {
    const Place* const to = place(lane);
    return to != nullptr && to->transport->can_offer(to->rank, data, bytes);
  }
  bool offer(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override {
    const Place* const to = place(lane);
    return to != nullptr && to->transport->offer(to->rank, data, bytes, signature);
  }
  std::size_t fetch(int lane, std::size_t offset, void* target,
                    std::size_t bytes) noexcept override {
    const Place* const from = place(lane);
    return from == nullptr ? 0 : from->transport->fetch(from->rank, offset, target, bytes);
  }
  Mark mark(int lane) const noexcept override {
    const Place* const to = place(lane);
    return to == nullptr ? 0 : to->transport->mark(to->rank);
  }
  bool drained(int lane, Mark mark) noexcept override {
    const Place* const to = place(lane);
    return to == nullptr || to->transport->drained(to->rank, mark);
  }
  bool flush(int lane) noexcept override;
  bool reclaim() noexcept override;
  void close() noexcept override;
  void abandon() noexcept override;
  int slowest_reader(int lane) noexcept override { return lane; }

 private:
  // Returns nullptr for a multicast, and for the lane to this rank itself.
  const Place* place(int lane) const noexcept {
    const auto index = static_cast<std::size_t>(lane);
    return index < places_.size() && lane != rank_ ? &places_[index] : nullptr;
  }

  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Place> places_;
  int rank_;
  Limits limits_;
};

}  // namespace unisono::transport
