// A link with correct, hostile and dying peers. The other side is a bare socket if it must
// misbehave.
#include "transport/tcp/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/crc32c.h"
#include "transport/tcp/connections.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace unisono::tcp {
namespace {

constexpr transport::LaneKey kGroup{.group = 5};

class TcpLinkTest : public ::testing::Test {
 protected:
  TcpLinkTest() {
    SocketPair pair = socket_pair();
    other_ = std::move(pair.b);
    std::vector<Channel> streams;
    streams.push_back(std::move(pair.a));
    link_ = std::make_unique<TcpLink>(3, std::move(streams), 4, &events_);
  }
  void write(const void* data, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t put = ::send(other_.get(), static_cast<const char*>(data) + done, bytes - done,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) {
        done += static_cast<std::size_t>(put);
      } else if (errno != EAGAIN || link_->health().failure()) {
        return;
      }
      link_->receive();
    }
  }
  void write(const FrameHeader& header, const std::string& payload = "") {
    std::string frame(kHeaderBytes, '\0');
    encode(header, reinterpret_cast<std::byte*>(frame.data()));
    frame += payload;
    write(frame.data(), frame.size());
  }
  void message(std::uint32_t number, std::size_t bytes, const transport::LaneKey& lane = kGroup) {
    write({.kind = FrameKind::message,
           .epoch = lane.epoch,
           .group = lane.group,
           .bytes = static_cast<std::uint32_t>(bytes),
           .number = number},
          std::string(bytes, 'm'));
  }
  // Receives until the kernel has delivered everything that was written.
  void receive_all() {
    for (int idle = 0; idle < 20 && !link_->health().gone();) {
      idle = link_->receive() ? 0 : idle + 1;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  Reason reason() {
    receive_all();
    return link_->health().failure().reason;
  }

  LinkEvents events_;
  UniqueFd other_;
  std::unique_ptr<TcpLink> link_;
};

class TcpCheckedLink : public TcpLinkTest {
 protected:
  static constexpr std::size_t kBytes = 200'000;

  TcpCheckedLink() {
    SocketPair pair = socket_pair();
    other_ = std::move(pair.b);
    std::vector<Channel> streams;
    streams.emplace_back(std::move(pair.a), nullptr, true);
    link_ = std::make_unique<TcpLink>(3, std::move(streams), 4, &events_);
    lane_ = link_->open(kGroup);
  }
  // Sends only the header, with the checksum of `payload_`; the payload follows later.
  void announce() {
    write({.kind = FrameKind::message,
           .group = kGroup.group,
           .bytes = kBytes,
           .sum = kernels::crc32c(std::as_bytes(std::span(payload_)))});
    for (int looks = 0; looks < 1000 && !link_->peek_unread(*lane_, offer_); ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(offer_.offered());
  }
  // Sends the payload and fetches all of it to one place. Returns how many bytes were reported
  // before the end.
  std::size_t fetch_all(const std::string& payload) {
    std::size_t told = 0;
    std::size_t done = 0;
    for (int idle = 0; idle < 1000 && told < kBytes && !link_->health().failure();) {
      const ssize_t put = ::send(other_.get(), payload.data() + done,
                                 std::min<std::size_t>(30'000, kBytes - done), MSG_DONTWAIT);
      done += put > 0 ? static_cast<std::size_t>(put) : 0;
      const std::size_t got = link_->fetch(*lane_, told, target_.data() + told, kBytes - told);
      parts_ += got != 0 ? 1 : 0;
      told += got;
      idle = got != 0 || put > 0 ? 0 : idle + 1;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return told;
  }

  Lane* lane_ = nullptr;
  transport::Incoming offer_;
  std::string payload_ = std::string(kBytes, 'p');
  std::vector<std::byte> target_ = std::vector<std::byte>(kBytes);
  int parts_ = 0;
};

TEST_F(TcpCheckedLink, ReadsALongMessageToItsPlaceAndTellsOfItOnceItIsChecked) {
  announce();
  EXPECT_EQ(fetch_all(payload_), kBytes);
  EXPECT_EQ(parts_, 1);
  EXPECT_EQ(link_->slots(), 0U);
  EXPECT_EQ(std::memcmp(target_.data(), payload_.data(), kBytes), 0);
}

TEST_F(TcpCheckedLink, TellsNothingOfALongMessageThatWasDamaged) {
  announce();
  std::string damaged = payload_;
  damaged[kBytes - 1] ^= 4;
  EXPECT_EQ(fetch_all(damaged), 0U);
  EXPECT_EQ(link_->health().failure().reason, Reason::damaged);
}

// Another group may need the stream when half of the message has been fetched.
TEST_F(TcpCheckedLink, GoesOnInASlotWhereTheStreamIsNeeded) {
  announce();
  ASSERT_EQ(::send(other_.get(), payload_.data(), 50'000, MSG_DONTWAIT), 50'000);
  for (int looks = 0; looks < 100; ++looks) {
    ASSERT_EQ(link_->fetch(*lane_, 0, target_.data(), kBytes), 0U);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  write(payload_.data() + 50'000, kBytes - 50'000);
  receive_all();
  EXPECT_EQ(link_->slots(), 1U);
  EXPECT_EQ(link_->fetch(*lane_, 0, target_.data(), kBytes), kBytes);
  EXPECT_EQ(std::memcmp(target_.data(), payload_.data(), kBytes), 0);
}

TEST_F(TcpLinkTest, DropsTheConnectionAtRandomBytes) {
  std::mt19937_64 random(2);
  std::string noise(70'000, '\0');
  for (char& byte : noise) {
    byte = static_cast<char>(random());
  }
  write(noise.data(), noise.size());
  EXPECT_EQ(reason(), Reason::bad_frame);
  EXPECT_EQ(describe(link_->health().failure()),
            "the connection to rank 3 carried bytes that are not a frame (its check is wrong)");
}

TEST_F(TcpLinkTest, RefusesMoreThanTheWindowHolds) {
  Lane* lane = link_->open(kGroup);
  for (std::uint32_t i = 0; i < 4; ++i) {
    message(i, transport::kMostBytes);
  }
  EXPECT_EQ(reason(), Reason::none);
  EXPECT_LE(link_->slots(), 4U);
  message(4, transport::kMostBytes);
  EXPECT_EQ(reason(), Reason::protocol);
  transport::Incoming first;
  EXPECT_TRUE(link_->peek(*lane, first)) << "what came before is still there";
}

TEST_F(TcpLinkTest, RefusesMoreShortMessagesThanTheWindowHolds) {
  for (std::uint32_t i = 0; i < transport::kShortWindow / transport::kShortBytes; ++i) {
    message(i, transport::kShortBytes);
  }
  EXPECT_EQ(reason(), Reason::none);
  message(transport::kShortWindow / transport::kShortBytes, 1);
  EXPECT_EQ(reason(), Reason::protocol);
}

TEST_F(TcpLinkTest, RefusesAMessageThatComesTwice) {
  message(0, 10);
  message(0, 10);
  EXPECT_EQ(reason(), Reason::protocol);
}

TEST_F(TcpLinkTest, RefusesAMessageThatOneIsMissingBefore) {
  message(0, 10);
  message(2, 10);
  EXPECT_EQ(reason(), Reason::protocol);
}

TEST_F(TcpLinkTest, RefusesANumberFarAhead) {
  message(transport::kMessages, 10);
  EXPECT_EQ(reason(), Reason::protocol);
}

TEST_F(TcpLinkTest, RefusesTheReleaseOfWhatWasNeverSent) {
  Lane* lane = link_->open(kGroup);
  ASSERT_TRUE(link_->send(*lane, "x", 1, 0));
  write({.kind = FrameKind::credit, .group = kGroup.group, .released = 1});
  EXPECT_EQ(reason(), Reason::none);
  write({.kind = FrameKind::credit, .group = kGroup.group, .released = 2});
  EXPECT_EQ(reason(), Reason::protocol);
}

TEST_F(TcpLinkTest, KeepsWhatComesForAGroupThatIsNotOpenYet) {
  message(0, 5);
  message(1, 100'000);
  receive_all();
  Lane* lane = link_->open(kGroup);
  transport::Incoming first;
  ASSERT_TRUE(link_->peek(*lane, first));
  EXPECT_EQ(first.bytes, 5U);
  link_->release(*lane);
  transport::Incoming second;
  ASSERT_TRUE(link_->peek(*lane, second));
  EXPECT_EQ(second.bytes, 100'000U);
}

TEST_F(TcpLinkTest, KeepsNotMoreOfThemThanItsLimit) {
  for (std::uint32_t i = 0; i <= transport::kMostEarlyLanes; ++i) {
    message(0, 0, {.group = i});
  }
  EXPECT_EQ(reason(), Reason::protocol);
}

TEST_F(TcpLinkTest, DropsLateFramesOfClosedGroupsAndDeadEpochs) {
  Lane* lane = link_->open(kGroup);
  link_->close(lane);
  message(0, 100'000);
  link_->retire_before(2);
  message(0, 10, {.group = 9, .epoch = 1});
  message(0, 7, {.group = 9, .epoch = 2});
  receive_all();
  EXPECT_EQ(link_->stale_frames(), 2U);
  Lane* alive = link_->open({.group = 9, .epoch = 2});
  transport::Incoming first;
  ASSERT_TRUE(link_->peek(*alive, first));
  EXPECT_EQ(first.bytes, 7U);
}

TEST_F(TcpLinkTest, TellsDeathFromLeaving) {
  write({.kind = FrameKind::leave});
  other_.reset();
  EXPECT_EQ(reason(), Reason::none);
  EXPECT_TRUE(link_->health().has_left());
}

TEST_F(TcpLinkTest, NamesADeadPeer) {
  message(0, 10);
  other_.reset();
  EXPECT_EQ(reason(), Reason::closed);
  EXPECT_EQ(events_.failures, 1);
  EXPECT_EQ(describe(link_->health().failure()),
            "the connection to rank 3 was closed by the peer without notice: most likely its "
            "process has ended");
}

TEST_F(TcpLinkTest, NamesAPeerThatResets) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(other_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  other_.reset();
  EXPECT_EQ(reason(), Reason::closed);
}

// A broken pipe does not reveal the reason; the peer's last message does.
TEST_F(TcpLinkTest, HearsTheLastWordsAlsoIfSendingFailsFirst) {
  Lane* lane = link_->open(kGroup);
  write({.kind = FrameKind::abort, .bytes = 3}, "why");
  write({.kind = FrameKind::leave});
  other_.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  for (int i = 0; i < 20; ++i) {
    link_->send(*lane, "x", 1, 0);
  }
  receive_all();
  ASSERT_NE(link_->health().abort_reason(), nullptr);
  EXPECT_EQ(*link_->health().abort_reason(), "why");
  EXPECT_TRUE(link_->health().has_left());
  EXPECT_FALSE(link_->health().failure());
}

TEST_F(TcpLinkTest, TakesAnOldCountForWhatItIs) {
  Lane* lane = link_->open(kGroup);
  ASSERT_TRUE(link_->send(*lane, "x", 1, 0));
  write({.kind = FrameKind::credit, .group = kGroup.group, .released = 1});
  EXPECT_EQ(reason(), Reason::none);
  write({.kind = FrameKind::credit, .group = kGroup.group, .released = 1 - 5000U});
  EXPECT_EQ(reason(), Reason::none) << "it was delayed on another stream";
}

}  // namespace
}  // namespace unisono::tcp
