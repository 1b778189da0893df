// The requirements on every transport. A new transport adds a World and a line to kWorlds
// (conformance_worlds.h).
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/bound_program.h"
#include "transport/conformance_worlds.h"

namespace unisono::transport {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(seed * 37 + i * 11 + i / 256);
  }
  return data;
}

class Conformance : public ::testing::TestWithParam<Kind> {
 protected:
  // The outgoing lane from rank 0 to rank 1, and the incoming lane of rank 1.
  static constexpr int kTo = 1;
  static constexpr int kFrom = 0;
  static constexpr int kToAll = kRanks;

  Transport& writer() { return world_->at(0); }
  Transport& reader() { return world_->at(1); }
  const Limits& limits() { return writer().limits(); }

  // Sends by send() or in place, as the engine would. Returns false if there is no room.
  bool put(int lane, const std::vector<std::byte>& data, std::uint64_t signature) {
    if (data.size() <= limits().inline_bytes) {
      return writer().send(lane, data.data(), data.size(), signature);
    }
    std::byte* room = writer().reserve(lane, data.size());
    if (room != nullptr) {
      std::memcpy(room, data.data(), data.size());
      writer().commit(lane, data.size(), signature);
    }
    return room != nullptr;
  }
  bool put_settled(int lane, const std::vector<std::byte>& data, std::uint64_t signature) {
    if (!put(lane, data, signature)) {
      world_->settle();
      return put(lane, data, signature);
    }
    return true;
  }
  // Reads and releases one message of a rank's lane.
  void expect_next(int rank, int lane, const std::vector<std::byte>& data,
                   std::uint64_t signature) {
    world_->settle();
    Incoming message;
    if (!world_->at(rank).peek(lane, message)) {
      world_->settle();  // a long message may come only when its reader asks for it
      ASSERT_TRUE(world_->at(rank).peek(lane, message));
    }
    ASSERT_EQ(message.signature, signature);
    ASSERT_EQ(std::vector<std::byte>(message.data, message.data + message.bytes), data);
    world_->at(rank).release(lane);
  }
  void expect_nothing(int rank, int lane) {
    world_->settle();
    Incoming message;
    EXPECT_FALSE(world_->at(rank).peek(lane, message));
  }

  std::unique_ptr<World> world_ = GetParam().make();
};

class MulticastConformance : public Conformance {};

TEST_P(Conformance, KnowsItsPlace) {
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(world_->at(rank).rank(), rank);
    EXPECT_EQ(world_->at(rank).ranks(), kRanks);
  }
  EXPECT_EQ(limits().multicast, GetParam().multicast);
  EXPECT_GE(limits().inline_bytes, engine::kSmallMessage);
  EXPECT_GE(limits().slot_bytes, limits().inline_bytes);
}

TEST_P(Conformance, CarriesEveryLength) {
  std::vector<std::size_t> lengths;
  for (std::size_t bytes = 0; bytes <= limits().inline_bytes + 9; ++bytes) {
    lengths.push_back(bytes);
  }
  lengths.insert(lengths.end(), {limits().slot_bytes - 1, limits().slot_bytes});
  for (const std::size_t bytes : lengths) {
    ASSERT_TRUE(put_settled(kTo, pattern(bytes, bytes), bytes)) << bytes;
    expect_next(1, kFrom, pattern(bytes, bytes), bytes);
    expect_nothing(1, kFrom);
  }
}

TEST_P(Conformance, ReservesShortMessagesAsWell) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{48}, limits().inline_bytes}) {
    std::byte* room = writer().reserve(kTo, bytes);
    ASSERT_NE(room, nullptr);
    std::memcpy(room, pattern(bytes, 5).data(), bytes);
    writer().commit(kTo, bytes, 6);
    expect_next(1, kFrom, pattern(bytes, 5), 6);
  }
}

TEST_P(Conformance, ReservesTheSameRoomUntilTheCommit) {
  for (const std::size_t bytes : {std::size_t{8}, limits().slot_bytes}) {
    std::byte* room = writer().reserve(kTo, bytes);
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(writer().reserve(kTo, bytes), room);
    std::memcpy(room, pattern(bytes, 1).data(), bytes);
    writer().commit(kTo, bytes, 9);
    expect_next(1, kFrom, pattern(bytes, 1), 9);
  }
}

TEST_P(Conformance, ShowsTheSameMessageUntilItIsReleased) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{200}, limits().slot_bytes}) {
    ASSERT_TRUE(put_settled(kTo, pattern(bytes, 1), 1));
    ASSERT_TRUE(put_settled(kTo, pattern(bytes, 2), 2));
    world_->settle();
    Incoming first;
    Incoming again;
    ASSERT_TRUE(reader().peek(kFrom, first));
    ASSERT_TRUE(reader().peek(kFrom, again));
    EXPECT_EQ(first.data, again.data);
    EXPECT_EQ(again.signature, 1U);
    expect_next(1, kFrom, pattern(bytes, 1), 1);
    expect_next(1, kFrom, pattern(bytes, 2), 2);
  }
}

TEST_P(Conformance, KeepsTheOrderOfALaneForManyLaps) {
  const std::size_t lengths[] = {0, 1, 8, 49, 200, limits().inline_bytes, 5000, 8};
  std::size_t sent = 0;
  std::size_t received = 0;
  const auto length = [&](std::size_t i) {
    return std::min(lengths[i * 7 % 8], limits().slot_bytes);
  };
  while (received < 2000) {
    // More than one message in the lane, and occasionally as many as it holds.
    const std::size_t most = received % 50 == 0 ? 1000 : 1 + received % 4;
    for (std::size_t i = 0; i < most && put(kTo, pattern(length(sent), sent), sent); ++i) {
      ++sent;
    }
    ASSERT_GT(sent + 1, received);
    for (std::size_t i = 0; i < 1 + received % 5 && received < sent; ++i, ++received) {
      expect_next(1, kFrom, pattern(length(received), received), received);
    }
  }
}

TEST_P(Conformance, SaysThatThereIsNoRoomAndLaterThatThereIs) {
  for (const std::size_t bytes : {std::size_t{8}, limits().inline_bytes, limits().slot_bytes}) {
    std::size_t sent = 0;
    while (put(kTo, pattern(bytes, sent), sent)) {
      ASSERT_LT(++sent, 100'000U);
    }
    ASSERT_GT(sent, 0U);
    EXPECT_FALSE(put(kTo, pattern(bytes, sent), sent));
    EXPECT_TRUE(world_->at(0).send(2, "x", 1, 1)) << "another lane has room";
    expect_next(2, 0, {std::byte{'x'}}, 1);
    for (std::size_t i = 0; i < sent; ++i) {
      expect_next(1, kFrom, pattern(bytes, i), i);
    }
    EXPECT_TRUE(put_settled(kTo, pattern(bytes, 7), 7));
    expect_next(1, kFrom, pattern(bytes, 7), 7);
  }
}

TEST_P(Conformance, SharesMemoryUntilItIsDrained) {
  std::vector<std::byte> memory = pattern(100'000, 3);
  ASSERT_TRUE(world_->let_share(0, memory));
  const std::size_t most = writer().shareable_bytes(kTo, memory.data(), memory.size());
  ASSERT_GT(most, 0U);
  const bool is_cut = most < memory.size();  // a lane that cuts it sends no long messages
  memory.resize(most);
  ASSERT_EQ(writer().shareable_bytes(kTo, memory.data() + 100, 1), 1U);
  ASSERT_TRUE(writer().share(kTo, memory.data(), memory.size(), 4));
  const Mark first = writer().mark(kTo);
  ASSERT_TRUE(writer().share(kTo, memory.data() + 1, 99, 5));
  const Mark second = writer().mark(kTo);
  world_->settle();
  // The kernel, if it takes bytes before the reader reads them, has taken them by now.
  EXPECT_EQ(writer().drained(kTo, first),
            is_cut ? world_->drains_short_unread() : world_->drains_unread());
  expect_next(1, kFrom, memory, 4);
  world_->settle();
  EXPECT_TRUE(writer().drained(kTo, first));
  EXPECT_EQ(writer().drained(kTo, second), world_->drains_short_unread());
  expect_next(1, kFrom, {memory.begin() + 1, memory.begin() + 100}, 5);
  world_->settle();
  EXPECT_TRUE(writer().drained(kTo, second));
}

// Fetches a lane's next message, which must be an offer, in pieces of at most `most` bytes.
std::vector<std::byte> fetch_all(Transport& transport, int lane, std::size_t bytes,
                                 std::size_t most) {
  std::vector<std::byte> fetched(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part =
        transport.fetch(lane, done, fetched.data() + done, std::min(most, bytes - done));
    if (part == 0) {
      return {};
    }
    done += part;
  }
  return fetched;
}

TEST_P(Conformance, LetsAMessageBeFetchedBeforeItIsRead) {
  for (std::size_t lap = 0; lap < 15; ++lap) {
    const std::size_t bytes = lap % 4 == 0 ? 100 : limits().slot_bytes - lap;
    const std::vector<std::byte> data = pattern(bytes, lap);
    ASSERT_TRUE(put_settled(kTo, data, lap));
    Incoming message;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto in_time = [end] { return std::chrono::steady_clock::now() < end; };
    for (int looks = 1; !reader().peek_unread(kFrom, message) && in_time(); ++looks) {
      writer().flush(kEveryLane);
      if (looks % 100 == 0) {
        world_->settle();
      }
    }
    ASSERT_EQ(message.bytes, bytes);
    ASSERT_EQ(message.signature, lap);
    std::vector<std::byte> fetched(bytes);
    std::size_t done = 0;
    if (message.data != nullptr) {
      std::memcpy(fetched.data(), message.data, bytes);
      done = bytes;
    }
    while (done < bytes && in_time()) {
      const std::size_t most = std::min<std::size_t>(bytes - done, 64 * (1 + lap * 37));
      done += reader().fetch(kFrom, done, fetched.data() + done, most);
      ASSERT_TRUE(done % 64 == 0 || done == bytes);
      writer().flush(kEveryLane);
      if (lap % 5 == 4 && done > bytes / 2) {  // other lanes need the stream
        world_->settle();
      }
    }
    ASSERT_TRUE(fetched == data) << "lap " << lap << ", " << done << " of " << bytes;
    reader().release(kFrom);
    expect_nothing(1, kFrom);
  }
}

TEST_P(Conformance, OffersAnyMemoryUntilItIsDrained) {
  const std::vector<std::byte> memory = pattern(400'000, 4);
  ASSERT_EQ(writer().can_offer(kTo, memory.data(), memory.size()), world_->offers());
  EXPECT_FALSE(writer().can_offer(kTo, memory.data(), 1)) << "short messages come along";
  if (!world_->offers()) {
    return;
  }
  ASSERT_TRUE(writer().offer(kTo, memory.data(), memory.size(), 4));
  const Mark mark = writer().mark(kTo);
  world_->settle();
  Incoming message;
  ASSERT_TRUE(reader().peek(kFrom, message));
  EXPECT_TRUE(message.offered());
  EXPECT_EQ(message.bytes, memory.size());
  EXPECT_EQ(message.signature, 4U);
  EXPECT_EQ(fetch_all(reader(), kFrom, memory.size(), 33'333), memory);
  EXPECT_FALSE(writer().drained(kTo, mark));
  reader().release(kFrom);
  world_->settle();
  EXPECT_TRUE(writer().drained(kTo, mark));
}

TEST_P(MulticastConformance, LetsAllOthersFetchAMulticast) {
  const std::vector<std::byte> memory = pattern(300'000, 5);
  ASSERT_EQ(writer().can_offer(kToAll, memory.data(), memory.size()), world_->offers());
  if (!world_->offers()) {
    return;
  }
  ASSERT_TRUE(writer().offer(kToAll, memory.data(), memory.size(), 4));
  const Mark mark = writer().mark(kToAll);
  world_->settle();
  for (int rank = 1; rank < kRanks; ++rank) {
    Incoming message;
    ASSERT_TRUE(world_->at(rank).peek(kRanks + kFrom, message));
    EXPECT_EQ(fetch_all(world_->at(rank), kRanks + kFrom, memory.size(), memory.size()), memory);
    EXPECT_FALSE(writer().drained(kToAll, mark));
    world_->at(rank).release(kRanks + kFrom);
  }
  world_->settle();
  EXPECT_TRUE(writer().drained(kToAll, mark));
}

TEST_P(Conformance, FillsItsRoomWithBytesOfAnyLength) {
  for (int lap = 0; lap < 100; ++lap) {  // the transport may try several ways
    const std::size_t bytes = limits().slot_bytes - static_cast<std::size_t>(lap);
    std::byte* room = writer().reserve(kTo, bytes);
    ASSERT_NE(room, nullptr);
    writer().fill(kTo, room, pattern(bytes, 6).data(), bytes);
    writer().commit(kTo, bytes, 7);
    expect_next(1, kFrom, pattern(bytes, 6), 7);
  }
}

TEST_P(MulticastConformance, LetsAllOthersReadAMulticast) {
  for (int lap = 0; lap < 200; ++lap) {
    const std::size_t bytes = lap % 3 == 0 ? 1 : lap % 3 == 1 ? 100 : limits().slot_bytes;
    const auto seed = static_cast<std::size_t>(lap);
    ASSERT_TRUE(put_settled(kToAll, pattern(bytes, seed), seed));
    for (int rank = 1; rank < kRanks; ++rank) {
      expect_next(rank, kRanks + kFrom, pattern(bytes, seed), seed);
    }
  }
  expect_nothing(1, kFrom);  // a lane of its own
}

TEST_P(MulticastConformance, WaitsForTheSlowestReaderOfAMulticast) {
  std::size_t sent = 0;
  while (put(kToAll, pattern(300, sent), sent)) {
    ++sent;
  }
  for (std::size_t i = 0; i < sent; ++i) {
    expect_next(1, kRanks + kFrom, pattern(300, i), i);
  }
  EXPECT_FALSE(put_settled(kToAll, pattern(300, sent), sent));
  EXPECT_EQ(writer().slowest_reader(kToAll), 2);
  EXPECT_EQ(writer().slowest_reader(kTo), 1);
  for (std::size_t i = 0; i < sent; ++i) {
    expect_next(2, kRanks + kFrom, pattern(300, i), i);
  }
  EXPECT_TRUE(put_settled(kToAll, pattern(300, sent), sent));
}

// Small programs send without checking for room (bound_program.h).
TEST_P(Conformance, TakesTwoSmallOperationsWithoutAReader) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{48}, std::size_t{49},
                                  std::size_t{104}, std::size_t{105}, engine::kSmallMessage}) {
    const std::size_t most = engine::kSmallLane / (64 + bytes + bytes / 4);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    // Tries every position in the lane, with as many released messages unreported as a reader may
    // leave.
    for (std::uint64_t lap = 0; lap < 200; ++lap) {
      for (std::size_t i = 0; i < 2 * most; ++i, ++sent) {
        ASSERT_TRUE(put(kTo, pattern(bytes, sent), sent)) << bytes << " bytes, lap " << lap;
      }
      for (; received < sent; ++received) {
        expect_next(1, kFrom, pattern(bytes, received), received);
      }
      world_->settle();
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Kind>& tested) {
  return tested.param.name;
}

std::vector<Kind> with_multicast() {
  std::vector<Kind> kinds;
  for (const Kind& kind : kWorlds) {
    if (kind.multicast) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, ::testing::ValuesIn(kWorlds), name_of);
INSTANTIATE_TEST_SUITE_P(Transports, MulticastConformance, ::testing::ValuesIn(with_multicast()),
                         name_of);

}  // namespace
}  // namespace unisono::transport
