// The lanes of one group over the UCX connections of its world.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx/connections.h"

namespace unisono::ucx {

class UcxTransport final : public transport::Transport {
 public:
  // As TcpTransport. Throws resource.
  UcxTransport(UcxConnections& connections, const transport::LaneKey& group,
               const std::vector<int>& members, int rank);
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;
  ~UcxTransport() override { close(); }

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
    return std::min(bytes, most_bytes_);
  }
  bool share(int lane, const void* data, std::size_t bytes,
             std::uint64_t signature) noexcept override;
  transport::Mark mark(int lane) const noexcept override;
  bool drained(int lane, transport::Mark mark) noexcept override;
  bool flush(int lane) noexcept override;
  int slowest_reader(int lane) noexcept override { return lane; }

  void close() noexcept override;
  void abandon() noexcept override { lanes_.clear(); }

 private:
  // Returns nullptr if there is none.
  UcxLane* lane(int number) const noexcept {
    const auto index = static_cast<std::size_t>(number);
    return index < lanes_.size() ? lanes_[index] : nullptr;
  }

  Shared& shared_;
  int rank_;
  std::size_t most_bytes_;  // of a message
  transport::Limits limits_;
  std::vector<UcxLane*> lanes_;
};

}  // namespace unisono::ucx
