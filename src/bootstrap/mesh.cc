#include "bootstrap/mesh.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "bootstrap/process.h"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostNoteBytes = 256;
// A killed process closes its connections a moment before it counts as ended. Before it ends it
// must be scheduled once more, which may take long on a busy machine; no thread waits for that
// while it holds the lock.
constexpr int kEndMs = 3;
constexpr int kClosingMs = 500;

}  // namespace

ConnectionMesh::ConnectionMesh(int rank, int size, RankNames names)
    : rank_(rank),
      owner_(::getpid()),
      names_(std::move(names)),
      members_(static_cast<std::size_t>(size)) {}

ConnectionMesh::~ConnectionMesh() {
  for (auto& note : pending_) {
    UniqueFd(note.fd).reset();
  }
  if (::getpid() != owner_) {  // a child of fork(): the connections still belong to the parent
    return;
  }
  for (const Member& member : members_) {
    if (member.link && !member.gone) {
      send_packet(member.link.get(), FrameType::farewell, false, {}, {});
    }
  }
}

void ConnectionMesh::add(int peer, UniqueFd link, pid_t pid) {
  if (!deaths_) {
    deaths_.reset(::epoll_create1(EPOLL_CLOEXEC));
    inbox_.reset(::epoll_create1(EPOLL_CLOEXEC));
  }
  Member& member = members_[static_cast<std::size_t>(peer)];
  member.link = std::move(link);
  member.pid = pid;
  watch(deaths_, member.link.get(), EPOLLRDHUP, peer);
  watch(inbox_, member.link.get(), EPOLLIN, peer);
  for (const Member& other : members_) {
    if (pid == 0 || (other.process && other.pid == pid)) {
      return;
    }
  }
  member.process = open_process(pid);
  if (member.process) {
    watch(deaths_, member.process.get(), EPOLLIN, peer);
  }
}

void ConnectionMesh::watch(const UniqueFd& set, int fd, std::uint32_t events, int peer) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = static_cast<std::uint32_t>(peer);
  if (!set || ::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    throw Error(ErrorCode::resource,
                std::string("cannot watch the other ranks: ") + std::strerror(errno) +  // NOLINT
                    "\nraise the limit of open files (ulimit -n)");
  }
}

void ConnectionMesh::require_owner() const {
  if (::getpid() != owner_) {
    throw Error(
        ErrorCode::usage,
        "a child of fork() cannot use its parent's communicator\nconnect again in the child");
  }
}

bool ConnectionMesh::send(int to, std::span<const std::byte> note, int fd) {
  require_owner();
  ErrorContext context;
  context.rank = names_.number(rank_);
  context.peer = names_.number(to);
  const bool valid = to >= 0 && static_cast<std::size_t>(to) < members_.size();
  if (!valid || !members_[static_cast<std::size_t>(to)].link || note.size() > kMostNoteBytes) {
    throw Error(ErrorCode::usage,
                names_.text(to) + " cannot be sent a note of " + std::to_string(note.size()) +
                    " bytes: at most " + std::to_string(kMostNoteBytes) +
                    ", and to ranks of other processes only",
                context);
  }
  const std::span<const int> fds(&fd, fd >= 0 ? 1 : 0);
  switch (send_packet(members_[static_cast<std::size_t>(to)].link.get(), FrameType::note, false,
                      note, fds)) {
    case Io::done:
      return true;
    case Io::would_block:
      return false;
    case Io::closed:
      break;
  }
  throw Error(ErrorCode::peer_lost, names_.text(to) + " closed its connection", context);
}

// Takes one packet of `peer`. Returns false if there is none now, or none will come.
bool ConnectionMesh::take_one(int peer, std::optional<FdNote>& note) {
  Member& member = members_[static_cast<std::size_t>(peer)];
  Frame frame;
  bool more = false;
  if (receive_packet(member.link.get(), frame, more) != Io::done) {
    return false;
  }
  if (frame.type == FrameType::farewell) {
    member.left.store(true, std::memory_order_release);
  } else if (frame.type == FrameType::note) {
    note = FdNote{peer, std::move(frame.bytes), frame.fds.empty() ? -1 : frame.fds[0].release()};
  }
  return true;
}

void ConnectionMesh::drain(int peer) {
  std::optional<FdNote> note;
  while (take_one(peer, note)) {
    if (note) {
      pending_.push_back(std::move(*note));
      note.reset();
    }
  }
}

// Stops watching a rank, because no more packets can come from it.
void ConnectionMesh::retire(int peer) {
  Member& member = members_[static_cast<std::size_t>(peer)];
  member.gone = true;
  ::epoll_ctl(deaths_.get(), EPOLL_CTL_DEL, member.link.get(), nullptr);
  ::epoll_ctl(inbox_.get(), EPOLL_CTL_DEL, member.link.get(), nullptr);
}

std::optional<FdNote> ConnectionMesh::receive() {
  require_owner();
  const std::lock_guard lock(mutex_);
  std::optional<FdNote> note;
  if (!pending_.empty()) {
    note = std::move(pending_.front());
    pending_.pop_front();
    return note;
  }
  epoll_event event{};
  while (!note && inbox_ && ::epoll_wait(inbox_.get(), &event, 1, 0) == 1) {
    const int peer = static_cast<int>(event.data.u32);
    if (!take_one(peer, note) && (event.events & (EPOLLHUP | EPOLLRDHUP)) != 0) {
      ::epoll_ctl(inbox_.get(), EPOLL_CTL_DEL, members_[static_cast<std::size_t>(peer)].link.get(),
                  nullptr);
    }
  }
  return note;
}

bool ConnectionMesh::look() {
  if (closing_.load(std::memory_order_relaxed) != 0 && ::getpid() == owner_) {
    look_at_closing();
  }
  std::array<epoll_event, 16> events;
  const int ready =
      !deaths_ ? 0 : ::epoll_wait(deaths_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (ready <= 0 || ::getpid() != owner_) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < ready; ++i) {
    examine(static_cast<int>(events[static_cast<std::size_t>(i)].data.u32));
  }
  return true;
}

std::optional<Death> ConnectionMesh::find_death() {
  while (!dead_.load(std::memory_order_acquire)) {
    if (!look() && !dead_.load(std::memory_order_acquire)) {
      return std::nullopt;
    }
  }
  const std::lock_guard lock(mutex_);
  return death_;
}

bool ConnectionMesh::is_dead(int peer) {
  while (look()) {
  }
  const std::lock_guard lock(mutex_);
  const Member& member = members_[static_cast<std::size_t>(peer)];
  return member.gone && !member.left.load(std::memory_order_relaxed);
}

// Treats a rank as dead to this job if it closed its connection but still runs.
void ConnectionMesh::look_at_closing() {
  const std::lock_guard lock(mutex_);
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (member.closing && (member.gone || member.closed.passed())) {
      member.closing = false;
      closing_.fetch_sub(1, std::memory_order_relaxed);
      examine_one(static_cast<int>(rank), "closed its connection");
    }
  }
}

// Handles an event on this rank's connection or process.
void ConnectionMesh::examine(int peer) {
  Member& member = members_[static_cast<std::size_t>(peer)];
  std::size_t holder = 0;  // of the process's descriptor
  while (holder < members_.size() &&
         !(members_[holder].process && members_[holder].pid == member.pid)) {
    ++holder;
  }
  const UniqueFd none;
  const UniqueFd& process = holder < members_.size() ? members_[holder].process : none;
  if (!has_ended(process, 0)) {
    drain(peer);
    if (member.left.load(std::memory_order_relaxed) || !process) {
      examine_one(peer, "closed its connection");
      return;
    }
    if (!has_ended(process, kEndMs)) {
      if (!member.closing) {
        member.closing = true;
        member.closed = Deadline::after_ms(kClosingMs);
        closing_.fetch_add(1, std::memory_order_relaxed);
        ::epoll_ctl(deaths_.get(), EPOLL_CTL_DEL, member.link.get(), nullptr);
      }
      return;
    }
  }
  ::epoll_ctl(deaths_.get(), EPOLL_CTL_DEL, process.get(), nullptr);
  const std::string how = how_it_ended(member.pid, process);
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].link && members_[rank].pid == member.pid) {
      examine_one(static_cast<int>(rank), how);
    }
  }
}

// Records a rank that is gone as dead, unless it sent its farewell.
void ConnectionMesh::examine_one(int peer, const std::string& how) {
  Member& member = members_[static_cast<std::size_t>(peer)];
  if (member.gone) {
    return;
  }
  drain(peer);
  retire(peer);
  if (!member.left.load(std::memory_order_relaxed) && !death_) {
    death_ = Death{peer, how};
    dead_.store(true, std::memory_order_release);
  }
}

bool ConnectionMesh::has_left(int peer) const {
  return members_[static_cast<std::size_t>(peer)].left.load(std::memory_order_acquire);
}

}  // namespace unisono::comm
