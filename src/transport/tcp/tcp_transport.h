// The lanes of one group over the connections of its world.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/tcp/connections.h"
#include "transport/transport.h"
#include "transport/window.h"

namespace unisono::tcp {

class TcpTransport final : public transport::Transport {
 public:
  // `members` are the group's world ranks, and `rank` is this rank's number among them. All members
  // must pass the same group number, and no other group of the epoch may have that number. Lanes
  // for a second use (send and recv) need a number of their own. Throws resource.
  TcpTransport(Connections& connections, const transport::LaneKey& group, std::vector<int> members,
               int rank);
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;
  ~TcpTransport() override { close(); }

  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return static_cast<int>(lanes_.size()); }
  const transport::Limits& limits() const noexcept override { return limits_; }
  bool peek(int lane, transport::Incoming& message) noexcept override;
  void release(int lane) noexcept override;
  bool peek_unread(int lane, transport::Incoming& message) noexcept override;
  std::size_t fetch(int lane, std::size_t offset, void* target,
                    std::size_t bytes) noexcept override;
  bool send(int lane, const void* data, std::size_t bytes,
            std::uint64_t signature) noexcept override;
  std::byte* reserve(int lane, std::size_t bytes) noexcept override;
  void commit(int lane, std::size_t bytes, std::uint64_t signature) noexcept override;
  std::size_t shareable_bytes(int, const void*, std::size_t bytes) noexcept override {
    return std::min(bytes, transport::kMostBytes);
  }
  bool share(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override;
  transport::Mark mark(int lane) const noexcept override;
  bool drained(int lane, transport::Mark mark) noexcept override;
  // Ignores the pending data of other groups.
  bool flush(int lane) noexcept override;
  int slowest_reader(int lane) noexcept override { return lane; }

  void close() noexcept override;
  void abandon() noexcept override { lanes_.clear(); }

 private:
  struct Peer {
    TcpLink* link = nullptr;  // nullptr: this rank
    Lane* lane = nullptr;
  };
  Peer* peer(int lane) noexcept {
    const auto index = static_cast<std::size_t>(lane);
    return index < lanes_.size() && lanes_[index].lane != nullptr ? &lanes_[index] : nullptr;
  }

  Connections& connections_;
  int rank_;
  transport::Limits limits_;
  std::vector<Peer> lanes_;
};

}  // namespace unisono::tcp
