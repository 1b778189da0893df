// send and recv over a transport that does as it is told.
#include "comm/point_to_point.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace unisono::comm {
namespace {

// Takes every message, and keeps all of them back until it is told to let them go.
class Withholding : public transport::Transport {
 public:
  bool withholds = true;
  int messages = 0;

  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return 2; }
  const transport::Limits& limits() const noexcept override { return limits_; }
  bool peek(int, transport::Incoming&) noexcept override { return false; }
  void release(int) noexcept override {}
  bool send(int, const void*, std::size_t, std::uint64_t) noexcept override {
    ++messages;
    return true;
  }
  std::byte* reserve(int, std::size_t) noexcept override { return room_.data(); }
  void commit(int, std::size_t, std::uint64_t) noexcept override { ++messages; }
  bool can_share(int, const void*, std::size_t) noexcept override { return false; }
  bool share(int, const void*, std::size_t, std::uint64_t) noexcept override { return false; }
  transport::Mark mark(int) const noexcept override { return 0; }
  bool drained(int, transport::Mark) noexcept override { return true; }
  bool flush(int) noexcept override { return !withholds; }
  int slowest_reader(int) noexcept override { return 1; }

 private:
  transport::Limits limits_{.inline_bytes = 64, .slot_bytes = 4096};
  std::array<std::byte, 4096> room_ = {};
};

// A transfer that has finished may be destroyed: then no queue may lead to it.
TEST(PointToPoint, ASendHasNotFinishedBeforeItHasLeft) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{5000}}) {
    Withholding transport;
    PointToPoint queue(transport, 7, [](int rank) { return std::to_string(rank); });
    std::vector<std::byte> data(bytes);
    Transfer first{.send = true, .peer = 1, .data = data.data(), .bytes = bytes};
    Transfer second = first;
    queue.post(first);
    static_cast<void>(queue.poll());
    EXPECT_GT(transport.messages, 0);
    EXPECT_FALSE(PointToPoint::finished(first)) << bytes;
    queue.post(second);
    transport.withholds = false;
    static_cast<void>(queue.poll());
    EXPECT_TRUE(PointToPoint::finished(first)) << bytes;
    EXPECT_TRUE(PointToPoint::finished(second)) << bytes;
  }
}

}  // namespace
}  // namespace unisono::comm
