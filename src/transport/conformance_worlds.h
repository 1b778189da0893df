// Worlds for the conformance tests: the transports of a few ranks, all in one thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "transport/shm/shm_transport.h"
#include "transport/shm/testing.h"
#include "transport/sim/network.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"
#if UNISONO_UCX
#include "transport/ucx/ucx_transport.h"
#endif

namespace unisono::transport {

// The transports of a group, all in this thread.
class World {
 public:
  virtual ~World() = default;
  virtual Transport& at(int rank) = 0;
  // Waits until everything in transit has arrived.
  virtual void settle() {}
  // Returns true if ranks can offer memory to each other.
  virtual bool offers() const { return true; }
  // Returns true if shared memory belongs to its writer again before its reader has read it. This
  // must also hold for a short piece that follows a piece that was read.
  virtual bool drains_unread() { return at(0).limits().through_kernel; }
  virtual bool drains_short_unread() { return drains_unread(); }
  // Makes a rank's memory shareable. Returns false if the rank cannot share it.
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
  sim::SimNetwork network_;
  bool shares_;
};

class ShmWorld final : public World {
 public:
  ShmWorld(int ranks, bool can_fetch) : can_fetch_(can_fetch) {
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
                   .event_counts = &event_counts_,
                   .pool = &mine.pool,
                   .regions = &mine.regions,
                   .registry = &mine.registry,
                   .pools = pools,
                   .same_process = std::vector<bool>(n, true),
                   .pids = std::vector<int>(n, getpid()),
                   .can_fetch = std::vector<bool>(n, can_fetch)};
      mine.transport = std::make_unique<shm::ShmTransport>(
          mine.host, memory_.data() + layout_.lanes, members, static_cast<int>(rank), 0);
    }
  }
  bool offers() const override { return can_fetch_; }
  Transport& at(int rank) override { return *ranks_[static_cast<std::size_t>(rank)]->transport; }
  bool let_share(int rank, const std::vector<std::byte>& memory) override {
    return ranks_[static_cast<std::size_t>(rank)]->regions.add(memory.data(), memory.size(), -1,
                                                               memory.data()) != 0;
  }

 private:
  struct Rank {
    Rank(int rank, std::byte* slots)
        : pool(slots), regions(rank, [](std::uint32_t, std::size_t, int) { return true; }, [] {}) {}
    shm::Pool pool;
    shm::Regions regions;
    shm::TransportRegistry registry;
    shm::ShmContext host;
    std::unique_ptr<shm::ShmTransport> transport;
  };
  static constexpr int kMost = 3;
  static constexpr shm::TestLayout layout_{kMost};
  bool can_fetch_;
  UniqueFd file_ = shm::create_memory("conformance", layout_.bytes);
  shm::Mapping memory_{file_.get(), layout_.bytes};
  shm::EventCounts event_counts_{memory_.data(), kMost};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

class TcpWorld final : public World {
 public:
  TcpWorld(int ranks, const std::string& host, int streams, const tcp::SocketOptions& options,
           const tcp::Protection& protection = {}) {
    tcp::Mesh mesh = tcp::socket_mesh(ranks, streams, host, options, protection);
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) {
      members.push_back(rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      connections_.push_back(std::make_unique<tcp::Connections>(
          rank, std::move(mesh[static_cast<std::size_t>(rank)])));
      transports_.push_back(std::make_unique<tcp::TcpTransport>(
          *connections_.back(), transport::LaneKey{.group = 7}, members, rank));
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

#if UNISONO_UCX
class UcxWorld final : public World {
 public:
  // `devices`: UCX_TLS.
  UcxWorld(int ranks, const char* devices) {
    ::setenv("UCX_TLS", devices, 1);  // NOLINT(concurrency-mt-unsafe): before any thread
    tcp::Mesh mesh = tcp::socket_mesh(ranks, 1);
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) {
      members.push_back(rank);
      connections_.push_back(std::make_unique<ucx::UcxConnections>(rank, ranks));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> introductions;
      for (int peer = 0; peer < ranks; ++peer) {
        introductions.push_back(
            peer == rank ? "" : connections_[static_cast<std::size_t>(peer)]->introduction(rank));
      }
      connections_[static_cast<std::size_t>(rank)]->meet(
          std::make_unique<tcp::Connections>(rank, std::move(mesh[static_cast<std::size_t>(rank)])),
          introductions);
    }
    for (std::size_t connected = 0; connected < connections_.size();) {
      connected = 0;
      for (const auto& mine : connections_) {
        connected += mine->missing().empty() ? 1U : 0U;
      }
    }
    for (const auto& mine : connections_) {
      transports_.push_back(std::make_unique<ucx::UcxTransport>(
          *mine, transport::LaneKey{.group = 7}, members, mine->rank()));
    }
  }
  ~UcxWorld() override {
    for (const auto& mine : connections_) {
      EXPECT_EQ(mine->first_loss().how, "");
    }
  }
  bool offers() const override { return false; }
  bool drains_unread() override { return false; }
  bool drains_short_unread() override { return true; }
  Transport& at(int rank) override { return *transports_[static_cast<std::size_t>(rank)]; }
  void settle() override {
    for (bool under_way = true; under_way;) {
      ucx::UcxTraffic all;
      under_way = false;
      for (const auto& mine : connections_) {
        mine->progress();
        const ucx::UcxTraffic& traffic = mine->shared().traffic;
        all.sent += traffic.sent;
        all.come += traffic.come;
        under_way = under_way || mine->is_receiving();
      }
      under_way = under_way || all.sent != all.come;
    }
  }
  bool let_share(int, const std::vector<std::byte>&) override { return true; }

 private:
  std::vector<std::unique_ptr<ucx::UcxConnections>> connections_;
  std::vector<std::unique_ptr<ucx::UcxTransport>> transports_;
};
#endif

struct Kind {
  const char* name;
  std::unique_ptr<World> (*make)();
  bool multicast = true;
};

inline constexpr int kRanks = 3;

inline constexpr Kind kWorlds[] = {
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
                                                          .unreported_bytes = 300,
                                                          .sharing = 7,
                                                          .offering = 7,
                                                          .delay = 10,
                                                          .told_late = 50,
                                                          .seed = 3}));
     }},
    {"tcp", [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 1, {})); }, false},
    {"tcp_v6", [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "::1", 1, {})); }, false},
    {"tcp_streams", [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 3, {})); },
     false},
    {"tcp_tls",
     [] { return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 1, {}, {.tls = true})); },
     false},
    {"tcp_checksum",
     [] {
       return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 2, {}, {.checksum = true}));
     },
     false},
    {"tcp_tls_tiny",
     [] {
       return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 2, {.send_buffer = 16384},
                                                  {.tls = true, .checksum = true}));
     },
     false},
    // With this buffer, the kernel rarely takes a whole frame at once.
    {"tcp_tiny",
     [] {
       return std::unique_ptr<World>(new TcpWorld(kRanks, "127.0.0.1", 2, {.send_buffer = 2048}));
     },
     false},
#if UNISONO_UCX
    {"ucx_tcp", [] { return std::unique_ptr<World>(new UcxWorld(kRanks, "tcp")); }, false},
    {"ucx_shm", [] { return std::unique_ptr<World>(new UcxWorld(kRanks, "sm")); }, false},
    {"ucx_all", [] { return std::unique_ptr<World>(new UcxWorld(kRanks, "all")); }, false},
#endif
};

}  // namespace unisono::transport
