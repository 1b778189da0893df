// The way that a piece of a message takes into a lane.
#include "transport/send.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/mixed_transport.h"

namespace unisono::transport {
namespace {

// Records the way that it was asked to take.
class Noting final : public Transport {
 public:
  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return 2; }
  const Limits& limits() const noexcept override { return limits_; }
  bool peek(int, Incoming&) noexcept override { return false; }
  void release(int) noexcept override {}
  bool send(int, const void*, std::size_t, std::uint64_t) noexcept override {
    way = "send";
    return room;
  }
  std::byte* reserve(int, std::size_t) noexcept override {
    way = "slot";
    return room ? slot.data() : nullptr;
  }
  void commit(int, std::size_t bytes, std::uint64_t signature) noexcept override {
    committed = bytes;
    last_signature = signature;
  }
  std::size_t shareable_bytes(int, const void*, std::size_t bytes) noexcept override {
    return registered ? std::min(bytes, most_shared) : 0;
  }
  bool share(int, const void*, std::size_t, std::uint64_t) noexcept override {
    way = "share";
    return room;
  }
  bool can_offer(int, const void* data, std::size_t bytes) noexcept override {
    offered = data;
    offered_bytes = bytes;
    return readable;
  }
  bool offer(int, const void*, std::size_t, std::uint64_t) noexcept override {
    way = "offer";
    return room;
  }
  Mark mark(int) const noexcept override { return 0; }
  bool drained(int, Mark) noexcept override { return true; }
  int slowest_reader(int) noexcept override { return 1; }

  bool room = true;
  bool registered = false;
  bool readable = false;
  std::size_t most_shared = 100;
  std::string way;
  std::array<std::byte, 64> slot = {};
  std::size_t committed = 0;
  std::uint64_t last_signature = 0;
  const void* offered = nullptr;
  std::size_t offered_bytes = 0;

 private:
  Limits limits_{.inline_bytes = 8, .slot_bytes = 64};
};

class Send : public ::testing::Test {
 protected:
  Sent send(Piece piece) {
    piece.message = message_.data();
    return send_some(lane_, 1, send_limits(lane_.limits(), 16), piece,
                     [](std::size_t bytes) { return 1000 + bytes; });
  }
  Noting lane_;
  std::array<std::byte, 200> message_ = {};
};

TEST_F(Send, CopiesAShortPieceIntoTheLane) {
  lane_.registered = lane_.readable = true;
  EXPECT_EQ(send({.bytes = 200, .done = 192, .ready = 200}).bytes, 8U);
  EXPECT_EQ(lane_.way, "send");
}

TEST_F(Send, SharesRegisteredMemoryUpToTheMostThatGoesAtOnce) {
  lane_.registered = lane_.readable = true;
  const Sent sent = send({.bytes = 200, .ready = 200});
  EXPECT_EQ(lane_.way, "share");
  EXPECT_EQ(sent.bytes, 100U);
  EXPECT_TRUE(sent.shared);
}

TEST_F(Send, SharesAsMuchAtOnceAsTheLaneOfAMixTakes) {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<MixedTransport::Place> places(1);
  for (const std::size_t most : {150U, 100U}) {
    auto one = std::make_unique<Noting>();
    one->registered = true;
    one->most_shared = most;
    places.push_back({.transport = one.get(), .rank = 1});
    transports.push_back(std::move(one));
  }
  MixedTransport mix(std::move(transports), std::move(places), 0);
  const Piece piece{.message = message_.data(), .bytes = 200, .ready = 200};
  const SendLimits limits = send_limits(mix.limits(), 16);
  const auto signature = [](std::size_t bytes) { return bytes; };
  EXPECT_EQ(send_some(mix, 1, limits, piece, signature).bytes, 150U);
  EXPECT_EQ(send_some(mix, 2, limits, piece, signature).bytes, 100U);
}

TEST_F(Send, CopiesWhatIsNotWorthSharing) {
  lane_.registered = true;
  const Sent sent = send({.bytes = 15, .ready = 15});
  EXPECT_EQ(lane_.way, "slot");
  EXPECT_FALSE(sent.shared);
}

TEST_F(Send, OffersTheRestOfAMessageThatItsReadersCanFetch) {
  lane_.readable = true;
  const Sent sent = send({.bytes = 200, .done = 50, .ready = 200});
  EXPECT_EQ(lane_.way, "offer");
  EXPECT_EQ(sent.bytes, 150U);
  EXPECT_TRUE(sent.shared);
  EXPECT_EQ(lane_.offered, message_.data());  // the transport decides about the whole message
  EXPECT_EQ(lane_.offered_bytes, 200U);
}

TEST_F(Send, CopiesIntoASlotWhereNothingElseIsAllowed) {
  lane_.registered = lane_.readable = true;
  message_[3] = std::byte{7};
  const Sent sent = send({.bytes = 200, .done = 3, .ready = 200, .may_share = false});
  EXPECT_EQ(lane_.way, "slot");
  EXPECT_EQ(sent.bytes, 64U);
  EXPECT_EQ(lane_.committed, 64U);
  EXPECT_EQ(lane_.last_signature, 1064U);
  EXPECT_EQ(lane_.slot[0], std::byte{7});
  lane_.registered = false;
  send({.bytes = 200, .ready = 200, .may_offer = false});
  EXPECT_EQ(lane_.way, "slot");
}

TEST_F(Send, SaysThatThereIsNoRoom) {
  lane_.room = false;
  for (const bool registered : {false, true}) {
    for (const std::size_t ready : {8U, 100U}) {
      lane_.registered = registered;
      lane_.readable = registered;
      EXPECT_EQ(send({.bytes = 200, .ready = ready}).bytes, 0U);
    }
  }
  EXPECT_EQ(lane_.committed, 0U);
}

}  // namespace
}  // namespace unisono::transport
