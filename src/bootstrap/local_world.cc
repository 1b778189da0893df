#include "bootstrap/local_world.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/asking.h"
#include "bootstrap/file_entry.h"
#include "bootstrap/mesh.h"
#include "bootstrap/process.h"
#include "bootstrap/star.h"

namespace unisono::comm {
namespace {

constexpr int kMostRanks = 4096;  // on one host

class World final : public LocalWorld {
 public:
  World(const JoinRequest& join_request, Meeting meeting, const ConnectOptions& options)
      : rank_(join_request.rank),
        size_(join_request.size),
        owner_(::getpid()),
        names_(join_request.names),
        star_(join_request, std::move(meeting.links), options.connect_timeout_ms,
              ten_times_a_second(options.interrupted)),
        mesh_(rank_, size_, names_) {
    exchange_peers(meeting.processes);
    build_mesh(meeting.processes);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const Peer& peer(int rank) const override { return peers_.at(static_cast<std::size_t>(rank)); }

  void tell(const Error& error) noexcept override { star_.tell(error); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    require_owner();
    return star_.all_gather(mine);
  }
  int broadcast_fd(int fd) override {
    require_owner();
    return star_.broadcast_fd(fd).release();
  }
  bool send_fd(int to, std::span<const std::byte> note, int fd) override {
    return mesh_.send(to, note, fd);
  }
  std::optional<FdNote> receive_fd() override { return mesh_.receive(); }
  std::optional<Death> find_death() override { return mesh_.find_death(); }
  bool is_dead(int rank) override { return mesh_.is_dead(rank); }
  bool has_left(int rank) const override { return mesh_.has_left(rank); }

 private:
  bool is_here(const std::vector<Process>& processes, int rank) const {
    return processes[static_cast<std::size_t>(rank)] == processes[static_cast<std::size_t>(rank_)];
  }

  void require_owner() const {
    if (::getpid() != owner_) {
      throw Error(
          ErrorCode::usage,
          "a child of fork() cannot use its parent's communicator\nconnect again in the child");
    }
  }

  void exchange_peers(const std::vector<Process>& processes) {
    const std::vector<int> cpus = allowed_cpus();
    const auto all = star_.all_gather(std::as_bytes(std::span(cpus)));
    const Process& self = processes[static_cast<std::size_t>(rank_)];
    for (int rank = 0; rank < size_; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      Peer& peer = peers_.emplace_back();
      peer.same_process = is_here(processes, rank);
      // Pids of another PID namespace have no meaning here.
      const bool named = self.seen == self.own && processes[at].seen == processes[at].own;
      peer.pid = peer.same_process ? ::getpid() : (named ? processes[at].seen : 0);
      peer.cpus.resize(all[at].size() / sizeof(int));
      std::memcpy(peer.cpus.data(), all[at].data(), peer.cpus.size() * sizeof(int));
    }
  }

  // Rank 0 makes a connected pair of sockets for every two ranks of different processes and
  // distributes the ends, so that no rank has to listen or authenticate again.
  void build_mesh(const std::vector<Process>& processes) {
    star_.begin();
    if (rank_ != 0) {
      take_links();
      return;
    }
    for (int low = 0; low < size_; ++low) {
      std::vector<UniqueFd> ends;
      std::vector<int> peers;
      for (int high = low + 1; high < size_; ++high) {
        if (processes[static_cast<std::size_t>(low)] == processes[static_cast<std::size_t>(high)]) {
          continue;
        }
        auto [mine, theirs] = make_pair();
        hand_out(high, {&low, 1}, {&theirs, 1});
        ends.push_back(std::move(mine));
        peers.push_back(high);
      }
      hand_out(low, peers, ends);
    }
  }

  std::pair<UniqueFd, UniqueFd> make_pair() {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
      star_.fail(ErrorCode::resource, names_.text(0) +
                                          " cannot make the connections between the ranks: " +
                                          std::strerror(errno) +  // NOLINT(concurrency-mt-unsafe)
                                          "\nraise the limit of open files (ulimit -n)");
    }
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }

  void hand_out(int to, std::span<const int> peers, std::span<UniqueFd> ends) {
    if (to == 0) {
      for (std::size_t i = 0; i < ends.size(); ++i) {
        add_link(peers[i], std::move(ends[i]));
      }
      return;
    }
    while (!ends.empty()) {
      const std::size_t count = std::min(ends.size(), kMostDescriptors);
      std::vector<int> fds;
      for (const UniqueFd& end : ends.first(count)) {
        fds.push_back(end.get());
      }
      star_.send(to, FrameType::links, std::as_bytes(peers.first(count)), fds);
      peers = peers.subspan(count);
      ends = ends.subspan(count);
    }
  }

  void take_links() {
    auto missing = std::count_if(peers_.begin(), peers_.end(),
                                 [](const Peer& peer) { return !peer.same_process; });
    while (missing > 0) {
      Frame frame = star_.receive(FrameType::links);
      std::vector<int> from(frame.fds.size());
      if (from.empty() || frame.bytes.size() != from.size() * sizeof(int)) {
        star_.fail(ErrorCode::corrupt, names_.text(0) + " sent connections that cannot be read", 0);
      }
      std::memcpy(from.data(), frame.bytes.data(), frame.bytes.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] < 0 || from[i] >= size_ || peer(from[i]).same_process) {
          star_.fail(ErrorCode::corrupt, names_.text(0) + " sent a connection to nobody", 0);
        }
        add_link(from[i], std::move(frame.fds[i]));
        --missing;
      }
    }
  }

  void add_link(int rank, UniqueFd link) { mesh_.add(rank, std::move(link), peer(rank).pid); }

  int rank_;
  int size_;
  pid_t owner_;
  RankNames names_;
  Star star_;
  ConnectionMesh mesh_;
  std::vector<Peer> peers_;
};

std::unique_ptr<LocalWorld> meet(const JoinRequest& join_request, const ConnectOptions& options) {
  Meeting meeting;
  if (join_request.size == 1) {
    meeting.processes.push_back({::getpid(), ::getpid()});
  } else {
    meeting = join_request.rank == 0 ? meet_as_root(join_request) : meet_as_other(join_request);
  }
  return std::make_unique<World>(join_request, std::move(meeting), options);
}

}  // namespace

std::unique_ptr<LocalWorld> LocalWorld::join(const ConnectOptions& options, RankNames names,
                                             const std::function<void()>& watch) {
  const bool numbered = options.rank >= 0 || (!options.file.empty() && options.rank == -1);
  if (options.size < 1 || options.size > kMostRanks || options.rank >= options.size || !numbered) {
    throw Error(ErrorCode::config, "rank " + std::to_string(options.rank) + " of " +
                                       std::to_string(options.size) +
                                       " is not possible: a host has 1 to " +
                                       std::to_string(kMostRanks) + " ranks, numbered from 0");
  }
  const std::function<bool()> asked = [&] {
    if (watch != nullptr) {
      watch();
    }
    return options.interrupted != nullptr && options.interrupted();
  };
  const std::function<bool()> interrupted = ten_times_a_second(
      watch == nullptr && options.interrupted == nullptr ? std::function<bool()>() : asked);
  JoinRequest join_request;
  join_request.rank = options.rank;
  join_request.size = options.size;
  join_request.names = std::move(names);
  join_request.job = options.job;
  join_request.token = options.token;
  join_request.deadline = Deadline::of_timeout(options.connect_timeout_ms).asking(interrupted);
  if (options.size == 1) {
    join_request.rank = 0;
  }
  if (options.file.empty() || options.size == 1) {
    return meet(join_request, options);
  }
  const FileEntry entry(options.file, options.rank, options.size, join_request.deadline);
  join_request.rank = entry.rank();
  join_request.job = entry.job();
  try {
    return meet(join_request, options);
  } catch (const Error&) {
    entry.withdraw();
    throw;
  }
}

}  // namespace unisono::comm
