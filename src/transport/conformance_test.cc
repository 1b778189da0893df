// What every transport must do, whatever carries its bytes. A new transport adds a World and a line
// to kWorlds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/bound_program.h"
#include "transport/shm/shm_transport.h"
#include "transport/sim/network.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace unisono::transport {
namespace {

// The transports of a group, all in this thread.
class World {
 public:
  virtual ~World() = default;
  virtual Transport& at(int rank) = 0;
  // Until what is under way has come.
  virtual void settle() {}
  // Whether ranks can offer memory to each other.
  virtual bool offers() const { return true; }
  // Makes memory of a rank one that it can share. False: it cannot.
  virtual bool let_share(int rank, const std::vector<std::byte>& memory) = 0;
};

class SimWorld final : public World {
 public:
  explicit SimWorld(const sim::NetworkOptions& options)
      : network_(options), shares_(options.sharing != 0) {}
  ~SimWorld() override { EXPECT_EQ(network_.violation(), ""); }
  Transport& at(int rank) override { return network_.transport(rank); }
  void settle() override {
    while (network_.pass_to_next_change()) {
    }
  }
  bool let_share(int, const std::vector<std::byte>&) override { return shares_; }

 private:
  sim::Network network_;
  bool shares_;
};

class ShmWorld final : public World {
 public:
  ShmWorld(int ranks, bool can_fetch) : layout_(ranks), can_fetch_(can_fetch) {
    const auto n = static_cast<std::size_t>(ranks);
    std::vector<std::byte*> pools;
    std::vector<int> members;
    for (std::size_t rank = 0; rank < n; ++rank) {
      pools.push_back(memory_.data() + layout_.pools + rank * shm::kPoolBytes);
      members.push_back(static_cast<int>(rank));
    }
    for (std::size_t rank = 0; rank < n; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(static_cast<int>(rank), pools[rank]));
      Rank& mine = *ranks_.back();
      mine.host = {.rank = static_cast<int>(rank),
                   .world = memory_.data(),
                   .bells = &bells_,
                   .pool = &mine.pool,
                   .regions = &mine.regions,
                   .lenders = &mine.lenders,
                   .pools = pools,
                   .same_process = std::vector<bool>(n, true),
                   .pids = std::vector<int>(n, getpid()),
                   .can_fetch = std::vector<bool>(n, can_fetch)};
      mine.transport = std::make_unique<shm::ShmTransport>(
          mine.host, memory_.data() + layout_.group, members, static_cast<int>(rank), 0);
    }
  }
  bool offers() const override { return can_fetch_; }
  Transport& at(int rank) override { return *ranks_[static_cast<std::size_t>(rank)]->transport; }
  bool let_share(int rank, const std::vector<std::byte>& memory) override {
    return ranks_[static_cast<std::size_t>(rank)]->regions.add(memory.data(), memory.size(), -1) !=
           0;
  }

 private:
  struct Rank {
    Rank(int rank, std::byte* slots)
        : pool(slots), regions(rank, [](std::uint32_t, std::size_t, int) { return true; }, [] {}) {}
    shm::Pool pool;
    shm::Regions regions;
    shm::Lenders lenders;
    shm::Host host;
    std::unique_ptr<shm::ShmTransport> transport;
  };
  static constexpr int kMost = 3;
  shm::WorldLayout layout_;
  bool can_fetch_;
  shm::Descriptor file_ = shm::create_memory("conformance", shm::WorldLayout(kMost).bytes);
  shm::Mapping memory_{file_.get(), shm::WorldLayout(kMost).bytes};
  shm::Bells bells_{memory_.data(), kMost};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

class TcpWorld final : public World {
 public:
  TcpWorld(int ranks, const std::string& host, int streams, const tcp::SocketOptions& options) {
    tcp::Mesh mesh = tcp::socket_mesh(ranks, streams, host, options);
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) {
      members.push_back(rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      connections_.push_back(std::make_unique<tcp::Connections>(
          rank, std::move(mesh[static_cast<std::size_t>(rank)])));
      transports_.push_back(std::make_unique<tcp::TcpTransport>(
          *connections_.back(), tcp::LaneKey{.group = 7}, members, rank));
    }
  }
  ~TcpWorld() override {
    for (const auto& mine : connections_) {
      EXPECT_EQ(tcp::describe(mine->failure()), "");
    }
  }
  bool offers() const override { return false; }
  Transport& at(int rank) override { return *transports_[static_cast<std::size_t>(rank)]; }
  void settle() override {
    for (bool under_way = true; under_way;) {
      tcp::Connections::Traffic all;
      under_way = false;
      for (const auto& mine : connections_) {
        mine->progress();
        const tcp::Connections::Traffic traffic = mine->traffic();
        all.heard += traffic.heard;
        all.told += traffic.told;
        under_way = under_way || !mine->flush();
      }
      under_way = under_way || all.heard != all.told;
    }
  }
  bool let_share(int, const std::vector<std::byte>&) override { return true; }

 private:
  std::vector<std::unique_ptr<tcp::Connections>> connections_;
  std::vector<std::unique_ptr<tcp::TcpTransport>> transports_;
};

struct Kind {
  const char* name;
  std::unique_ptr<World> (*make)();
};

constexpr int kRanks = 3;

constexpr Kind kWorlds[] = {
    {"shm", [] { return std::unique_ptr<World>(std::make_unique<ShmWorld>(kRanks, true)); }},
    {"shm_without_fetch",
     [] { return std::unique_ptr<World>(std::make_unique<ShmWorld>(kRanks, false)); }},
    {"sim",
     [] {
       return std::unique_ptr<World>(std::make_unique<SimWorld>(
           sim::NetworkOptions{.ranks = kRanks, .sharing = 7, .offering = 7}));
     }},
    {"sim_slow",
     [] {
       return std::unique_ptr<World>(
           std::make_unique<SimWorld>(sim::NetworkOptions{.ranks = kRanks,
                                                          .untold_bytes = 300,
                                                          .sharing = 7,
                                                          .offering = 7,
                                                          .delay = 10,
                                                          .told_late = 50,
                                                          .seed = 3}));
     }},
    {"tcp", [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 1, {})); }},
    {"tcp_v6", [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "::1", 1, {})); }},
    {"tcp_streams",
     [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 3, {})); }},
    // Of hardly any frame the kernel takes the whole.
    {"tcp_tiny",
     [] {
       return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 2, {.send_buffer = 2048}));
     }},
};

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(seed * 37 + i * 11 + i / 256);
  }
  return data;
}

class Conformance : public ::testing::TestWithParam<Kind> {
 protected:
  // The outgoing lane of rank 0 to rank 1, and the incoming one there.
  static constexpr int kTo = 1;
  static constexpr int kFrom = 0;
  static constexpr int kToAll = kRanks;

  Transport& writer() { return world_->at(0); }
  Transport& reader() { return world_->at(1); }
  const Limits& limits() { return writer().limits(); }

  // By send() or in place, as the engine would. False: no room.
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
  // Reads one message of a rank's lane, and is done with it.
  void expect_next(int rank, int lane, const std::vector<std::byte>& data,
                   std::uint64_t signature) {
    world_->settle();
    Incoming message;
    ASSERT_TRUE(world_->at(rank).peek(lane, message));
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

TEST_P(Conformance, KnowsItsPlace) {
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(world_->at(rank).rank(), rank);
    EXPECT_EQ(world_->at(rank).ranks(), kRanks);
  }
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
    // More than one in the lane, and once in a while as many as it holds.
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
  ASSERT_TRUE(writer().can_share(memory.data(), memory.size()));
  ASSERT_TRUE(writer().can_share(memory.data() + 100, 1));
  ASSERT_TRUE(writer().share(kTo, memory.data(), memory.size(), 4));
  const Mark first = writer().mark(kTo);
  ASSERT_TRUE(writer().share(kTo, memory.data() + 1, 99, 5));
  const Mark second = writer().mark(kTo);
  world_->settle();
  // Where bytes go through the kernel, it has them by now, or soon.
  EXPECT_EQ(writer().drained(kTo, first), limits().through_kernel);
  expect_next(1, kFrom, memory, 4);
  world_->settle();
  EXPECT_TRUE(writer().drained(kTo, first));
  EXPECT_EQ(writer().drained(kTo, second), limits().through_kernel);
  expect_next(1, kFrom, {memory.begin() + 1, memory.begin() + 100}, 5);
  world_->settle();
  EXPECT_TRUE(writer().drained(kTo, second));
}

// The next message of a rank's lane, an offer, in pieces of at most `most`.
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
      writer().flush();
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
      writer().flush();
      if (lap % 5 == 4 && done > bytes / 2) {  // others need the stream
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

TEST_P(Conformance, LetsAllOthersFetchAMulticast) {
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
  for (int lap = 0; lap < 100; ++lap) {  // the transport may try one way and another
    const std::size_t bytes = limits().slot_bytes - static_cast<std::size_t>(lap);
    std::byte* room = writer().reserve(kTo, bytes);
    ASSERT_NE(room, nullptr);
    writer().fill(kTo, room, pattern(bytes, 6).data(), bytes);
    writer().commit(kTo, bytes, 7);
    expect_next(1, kFrom, pattern(bytes, 6), 7);
  }
}

TEST_P(Conformance, LetsAllOthersReadAMulticast) {
  if (!limits().multicast) {
    GTEST_SKIP() << "it has no multicast";
  }
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

TEST_P(Conformance, WaitsForTheSlowestReaderOfAMulticast) {
  if (!limits().multicast) {
    GTEST_SKIP() << "it has no multicast";
  }
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

// Small programs send without looking whether there is room (bound_program.h).
TEST_P(Conformance, TakesTwoSmallOperationsWithoutAReader) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{48}, std::size_t{49},
                                  std::size_t{104}, std::size_t{105}, engine::kSmallMessage}) {
    const std::size_t most = engine::kSmallLane / (64 + bytes + bytes / 4);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    // The lane at every position, with all that a reader may keep to itself.
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

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, ::testing::ValuesIn(kWorlds),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace unisono::transport
