// Reusable memory for tensors between stages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace unisono::parallel::detail {

class StageBuffer {
 public:
  StageBuffer() = default;
  explicit StageBuffer(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlign))),
        bytes_(bytes) {}
  std::span<std::byte> span() const { return {data_.get(), bytes_}; }
  bool is_there() const { return data_ != nullptr; }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, kAlign); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

class BufferPool {
 public:
  StageBuffer take(std::size_t bytes) {
    held_ += bytes;
    most_ = std::max(most_, held_);
    std::vector<StageBuffer>& spare = spare_[bytes];
    if (spare.empty()) {
      return StageBuffer(bytes);
    }
    StageBuffer buffer = std::move(spare.back());
    spare.pop_back();
    return buffer;
  }
  void give_back(StageBuffer buffer) {
    if (buffer.is_there()) {
      held_ -= buffer.span().size();
      spare_[buffer.span().size()].push_back(std::move(buffer));
    }
  }
  std::size_t most() const { return most_; }

 private:
  std::map<std::size_t, std::vector<StageBuffer>> spare_;  // by size in bytes
  std::size_t held_ = 0;
  std::size_t most_ = 0;
};

}  // namespace unisono::parallel::detail
