// What ranks of other hosts are doing, for the messages of mismatch and timeout: a rank that waits
// for long tells them what it is in. Nothing waits for these messages, and where the reader is busy
// they are left out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "comm/board.h"
#include "transport/tcp/tcp_transport.h"

namespace unisono::comm {

class RemoteRecords {
 public:
  // Throws resource.
  explicit RemoteRecords(tcp::Connections& connections);

  // `members`: ranks of the world; those of this host are passed over. Any thread.
  void tell(std::span<const int> members, std::uint64_t group,
            const OperationRecord& record) noexcept;
  // Takes in what has come.
  void listen() noexcept;
  // The board of a rank of another host in a group; nullptr: it has told nothing.
  const shm::Board* find(std::uint64_t group, int rank) noexcept;
  // A group has ended.
  void forget(std::uint64_t group) noexcept;

 private:
  // An authenticated peer that tells of more groups is heard no more.
  static constexpr std::size_t kMostBoards = 16384;

  std::mutex mutex_;  // guards all
  tcp::TcpTransport lanes_;
  std::map<std::pair<std::uint64_t, int>, std::unique_ptr<shm::Board>> boards_;
};

}  // namespace unisono::comm
