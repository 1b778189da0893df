// send and recv over a transport that the test controls.
#include "comm/point_to_point.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/sim/network.h"

namespace unisono::comm {
namespace {

// Accepts every message, and holds all messages back until release.
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
  std::size_t shareable_bytes(int, const void*, std::size_t) noexcept override { return 0; }
  bool share(int, const void*, std::size_t, std::uint64_t) noexcept override { return false; }
  transport::Mark mark(int) const noexcept override { return 0; }
  bool drained(int, transport::Mark) noexcept override { return true; }
  bool flush(int) noexcept override { return !withholds; }
  int slowest_reader(int) noexcept override { return 1; }

 private:
  transport::Limits limits_{.inline_bytes = 64, .slot_bytes = 4096};
  std::array<std::byte, 4096> room_ = {};
};

// A finished transfer may be destroyed, so no queue may still point to it.
TEST(PointToPoint, ASendHasNotFinishedBeforeItHasLeft) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{5000}}) {
    Withholding transport;
    PointToPoint queue(transport, 7, [](int rank) { return std::to_string(rank); });
    std::vector<std::byte> data(bytes);
    PendingTransfer first{.send = true, .peer = 1, .data = data.data(), .bytes = bytes};
    PendingTransfer second = first;
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

// A receive that matches the message is posted after the message begins and before it ends.
TEST(PointToPoint, AMessageThatIsStoredIsServedWhole) {
  const auto name = [](int rank) { return std::to_string(rank); };
  sim::SimNetwork network({.lane_slots = 2});  // of 4 KiB: it comes in parts
  PointToPoint sender(network.transport(0), 7, name);
  PointToPoint receiver(network.transport(1), 7, name);
  std::vector<std::byte> data(20'000, std::byte{0x5a});
  std::vector<std::byte> got(data.size());
  std::byte other{};
  PendingTransfer sent{
      .send = true, .peer = 1, .tag = 1, .data = data.data(), .bytes = data.size()};
  PendingTransfer late{.peer = 0, .tag = 1, .data = got.data(), .bytes = got.size()};
  PendingTransfer unrelated{.peer = 0, .tag = 2, .data = &other, .bytes = 1};
  sender.post(sent);
  static_cast<void>(sender.poll());
  receiver.post(unrelated);
  static_cast<void>(receiver.poll());
  receiver.post(late);
  static_cast<void>(receiver.poll());
  EXPECT_FALSE(PointToPoint::finished(late));
  for (int i = 0; i < 100 && !PointToPoint::finished(late); ++i) {
    static_cast<void>(sender.poll());
    ASSERT_NE(receiver.poll(), PointToPoint::Progress::failed) << receiver.fault();
  }
  EXPECT_TRUE(PointToPoint::finished(late));
  EXPECT_EQ(got, data);
  EXPECT_FALSE(PointToPoint::finished(unrelated));
}

// Returns the fault of a receive of `room` bytes for a message of `sent` bytes; "" if there is
// none.
std::string fault_of(std::size_t sent, std::size_t room, bool exact, bool stored) {
  const auto name = [](int rank) { return std::to_string(rank); };
  sim::SimNetwork network({});
  PointToPoint sender(network.transport(0), 7, name);
  PointToPoint receiver(network.transport(1), 7, name);
  std::vector<std::byte> data(sent);
  std::vector<std::byte> got(room);
  PendingTransfer message{.send = true, .peer = 1, .tag = 1, .data = data.data(), .bytes = sent};
  PendingTransfer other{.peer = 0, .tag = 2};
  PendingTransfer receive{.peer = 0, .tag = 1, .data = got.data(), .bytes = room, .exact = exact};
  sender.post(message);
  if (stored) {
    receiver.post(other);
  } else {
    receiver.post(receive);
  }
  for (int i = 0; i < 100 && !PointToPoint::finished(receive); ++i) {
    static_cast<void>(sender.poll());
    if (receiver.poll() == PointToPoint::Progress::failed) {
      return receiver.fault();
    }
    if (stored && i == 50) {
      receiver.post(receive);
    }
  }
  EXPECT_TRUE(PointToPoint::finished(receive));
  EXPECT_EQ(receive.bytes, sent);
  return "";
}

TEST(PointToPoint, RefusesAMessageThatDoesNotFit) {
  for (const std::size_t sent : {std::size_t{8}, std::size_t{9000}}) {
    for (const bool stored : {false, true}) {
      for (const bool exact : {false, true}) {
        EXPECT_NE(fault_of(sent, sent - 1, exact, stored), "") << sent;
        EXPECT_EQ(fault_of(sent, sent, exact, stored), "") << sent;
        EXPECT_EQ(fault_of(sent, sent + 1, exact, stored) == "", !exact) << sent;
      }
      EXPECT_EQ(fault_of(0, 1, false, stored), "");
    }
  }
}

// Some hundred thousand receives of one tag are matched in an order other than that of their posts.
// With quadratic work the test would exceed its time limit.
TEST(PointToPoint, AnyNumberOfPostedReceivesAndStoredMessagesIsServed) {
  constexpr std::size_t kCount = 200'000;
  const auto name = [](int rank) { return std::to_string(rank); };
  sim::SimNetwork network({});
  PointToPoint sender(network.transport(0), 7, name);
  PointToPoint receiver(network.transport(1), 7, name);
  std::vector<std::uint32_t> data(kCount);
  std::vector<std::uint32_t> got(kCount, 0);
  std::vector<PendingTransfer> sends(kCount);
  std::vector<PendingTransfer> receives(kCount);
  // The tags of the second half come first, and are stored because other receives are posted.
  const auto tag_of = [](std::size_t i) { return static_cast<int>(i < kCount / 2 ? i % 7 : i); };
  const auto post_receive = [&](std::size_t i) {
    receives[i] = {.peer = 0,
                   .tag = tag_of(i),
                   .data = reinterpret_cast<std::byte*>(&got[i]),
                   .bytes = sizeof(got[i])};
    receiver.post(receives[i]);
  };
  const auto post_send = [&](std::size_t i) {
    data[i] = static_cast<std::uint32_t>(i);
    sends[i] = {.send = true,
                .peer = 1,
                .tag = tag_of(i),
                .data = reinterpret_cast<std::byte*>(&data[i]),
                .bytes = sizeof(data[i])};
    sender.post(sends[i]);
  };
  for (std::size_t i = 0; i < kCount / 2; ++i) {
    post_receive(i);
  }
  for (std::size_t i = kCount; i-- > kCount / 2;) {
    post_send(i);
  }
  const auto move_all = [&] {
    for (bool moved = true; moved;) {
      const auto sent = sender.poll();
      const auto received = receiver.poll();
      ASSERT_NE(received, PointToPoint::Progress::failed) << receiver.fault();
      moved =
          sent == PointToPoint::Progress::advanced || received == PointToPoint::Progress::advanced;
    }
  };
  move_all();
  for (std::size_t i = 0; i < kCount / 2; ++i) {
    post_send(i);
  }
  for (std::size_t i = kCount / 2; i < kCount; ++i) {
    post_receive(i);
  }
  move_all();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(PointToPoint::finished(sends[i])) << i;
    ASSERT_TRUE(PointToPoint::finished(receives[i])) << i;
    ASSERT_EQ(got[i], i);
  }
}

// A short message carries its type in its signature, a long message in its envelope, and a stored
// message in the store.
TEST(PointToPoint, AReceiveOfAnotherTypeFailsAndOneWithoutATypeMatchesAny) {
  const auto name = [](int rank) { return "rank " + std::to_string(rank); };
  struct Case {
    ElementType sent;
    ElementType received;
    bool fits;
  };
  const ElementType f32 = element_type(Dtype::f32);
  const ElementType i32 = element_type(Dtype::i32);
  for (const auto& [sent, received, fits] :
       {Case{f32, f32, true}, Case{f32, i32, false}, Case{f32, kAnyType, true},
        Case{kAnyType, i32, true}, Case{kAnyType, kAnyType, true}}) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{20'000}}) {
      for (const bool is_stored : {false, true}) {
        sim::SimNetwork network({});
        PointToPoint sender(network.transport(0), 7, name);
        PointToPoint receiver(network.transport(1), 7, name);
        std::vector<std::byte> data(bytes, std::byte{0x5a});
        std::vector<std::byte> got(bytes);
        std::byte other{};
        PendingTransfer send{
            .send = true, .peer = 1, .tag = -3, .data = data.data(), .bytes = bytes, .type = sent};
        PendingTransfer wanted{
            .peer = 0, .tag = -3, .data = got.data(), .bytes = bytes, .type = received};
        PendingTransfer unrelated{.peer = 0, .tag = 2, .data = &other, .bytes = 1};
        sender.post(send);
        receiver.post(is_stored ? unrelated : wanted);
        auto last = PointToPoint::Progress::idle;
        for (int i = 0; i < 100 && last != PointToPoint::Progress::failed; ++i) {
          static_cast<void>(sender.poll());
          last = receiver.poll();
          if (is_stored && i == 50) {
            receiver.post(wanted);
          }
        }
        EXPECT_EQ(last != PointToPoint::Progress::failed, fits) << receiver.fault();
        EXPECT_EQ(PointToPoint::finished(wanted), fits);
        EXPECT_EQ(got == data, fits);
        if (!fits) {
          const std::string count = std::to_string(bytes);
          EXPECT_EQ(receiver.fault(),
                    "recv of " + count + " bytes of i32 with tag -3 on rank 1, but rank 0 sends " +
                        count + " bytes of f32\nboth sides must give the same element type");
        }
      }
    }
  }
}

}  // namespace
}  // namespace unisono::comm
