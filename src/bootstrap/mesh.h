// The connections between ranks of different processes: they pass descriptors and reveal deaths.
//
// Threads: only the set-up may call add(); any thread may call the other functions.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/peer.h"
#include "bootstrap/rank_names.h"
#include "bootstrap/wire.h"

namespace unisono::comm {

class ConnectionMesh {
 public:
  ConnectionMesh(int rank, int size, RankNames names);
  ~ConnectionMesh();  // says farewell, so that peers do not report a death
  ConnectionMesh(const ConnectionMesh&) = delete;
  ConnectionMesh& operator=(const ConnectionMesh&) = delete;

  // Adds a rank of another process. With pid 0 the process cannot be identified from here, so only
  // its connection is watched.
  void add(int peer, UniqueFd link, pid_t pid);

  bool send(int to, std::span<const std::byte> note, int fd);
  std::optional<FdNote> receive();
  std::optional<Death> find_death();
  bool has_left(int peer) const;
  // Returns true if this rank is dead. Checks again, so it also detects deaths after the first one.
  bool is_dead(int peer);

 private:
  struct Member {
    UniqueFd link;
    UniqueFd process;  // only at the first rank of a process
    pid_t pid = 0;
    bool gone = false;
    bool closing = false;  // it closed its connection, and its process still runs
    Deadline closed = Deadline::never();
    std::atomic<bool> left = false;
  };

  bool look();  // false: nothing has happened
  void look_at_closing();
  void watch(const UniqueFd& set, int fd, std::uint32_t events, int peer);
  void drain(int peer);
  void retire(int peer);
  void examine(int peer);
  void examine_one(int peer, const std::string& how);
  bool take_one(int peer, std::optional<FdNote>& note);
  void require_owner() const;

  int rank_;
  pid_t owner_;
  RankNames names_;
  std::vector<Member> members_;
  UniqueFd deaths_;  // epoll: only hang-ups and ends of processes
  UniqueFd inbox_;   // epoll: notes
  mutable std::mutex mutex_;
  std::deque<FdNote> pending_;
  std::optional<Death> death_;
  std::atomic<bool> dead_ = false;
  std::atomic<int> closing_ = 0;  // number of closing members
};

}  // namespace unisono::comm
