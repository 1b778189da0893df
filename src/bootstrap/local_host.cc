#include "bootstrap/local_host.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "base/secret.h"
#include "bootstrap/process.h"

namespace unisono::comm {
namespace {

// An address in a rank's memory and the value expected at this address. A different value shows
// that another process has got the rank's pid.
struct Probe {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
};

// Returns false if the Yama module restricts reading: the kernel would log every refused attempt.
bool may_read_processes() {
  std::ifstream scope("/proc/sys/kernel/yama/ptrace_scope");
  int restricted = 0;
  return !(scope >> restricted) || restricted == 0 || geteuid() == 0;
}

// Travels with the descriptor of a region or of a group's segment.
struct Note {
  static constexpr std::uint32_t kRegion = 1;
  std::uint32_t kind = kRegion;
  std::uint32_t number = 0;  // of a region
  std::uint64_t bytes = 0;
  std::uint64_t name = 0;  // of a segment
};

std::span<const std::byte> bytes_of(const Note& note) {
  return std::as_bytes(std::span(&note, 1));
}

}  // namespace

LocalHost::LocalHost(LocalWorld& ranks, std::string_view job, int threads, bool oversubscribed,
                     std::function<void(const std::exception&)> on_error)
    : ranks_(ranks),
      memory_(ranks_),
      event_counts_(memory_.event_counts(), size()),
      pool_(memory_.pool(ranks_.rank())),
      regions_(
          ranks_.rank(),
          [this](std::uint32_t number, std::size_t bytes, int fd) {
            return announce(number, bytes, fd);
          },
          [this, tell = std::move(on_error)] {
            try {
              drain_announcements();
            } catch (const std::exception& error) {
              tell(error);  // the readers of lanes cannot throw
            }
          }),
      context_(make_context()),
      oversubscribed_(oversubscribed || find_oversubscription(threads)) {
  find_who_can_fetch();
  memory_.introduce(rank(), size(), job);
}

shm::ShmContext LocalHost::make_context() {
  shm::ShmContext context{.rank = ranks_.rank(),
                          .world = memory_.data(),
                          .event_counts = &event_counts_,
                          .pool = &pool_,
                          .regions = &regions_,
                          .registry = &registry_,
                          .pools = {},
                          .same_process = {},
                          .pids = {},
                          .can_fetch = {}};
  for (int peer = 0; peer < size(); ++peer) {
    context.pools.push_back(memory_.pool(peer));
    context.same_process.push_back(ranks_.peer(peer).same_process);
    context.pids.push_back(ranks_.peer(peer).pid);
  }
  return context;
}

bool LocalHost::is_one_process() const noexcept {
  return std::all_of(context_.same_process.begin(), context_.same_process.end(), std::identity());
}

// Determines which ranks can read which ranks' memory. Containers, security modules and different
// users may prevent it.
void LocalHost::find_who_can_fetch() {
  std::uint64_t value = 0;
  fill_random(std::as_writable_bytes(std::span(&value, 1)));
  const Probe mine{.address = reinterpret_cast<std::uint64_t>(&value), .value = value};
  const auto probes = ranks_.all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<std::byte> reads;
  const bool may_ask = may_read_processes();
  for (std::size_t peer = 0; peer < probes.size(); ++peer) {
    Probe probe;
    std::memcpy(&probe, probes[peer].data(), sizeof(probe));
    std::uint64_t found = 0;
    const bool read = may_ask && shm::read_process(context_.pids[peer], probe.address, &found,
                                                   sizeof(found)) == sizeof(found);
    reads.push_back(static_cast<std::byte>(read && found == probe.value));
  }
  for (const auto& row : ranks_.all_gather(reads)) {
    context_.can_fetch.push_back(row[static_cast<std::size_t>(rank())] == std::byte{1});
  }
}

bool LocalHost::find_oversubscription(int threads) const {
  std::set<int> cpus;
  for (int peer = 0; peer < size(); ++peer) {
    cpus.insert(ranks_.peer(peer).cpus.begin(), ranks_.peer(peer).cpus.end());
  }
  return static_cast<std::size_t>(size()) * static_cast<std::size_t>(threads) > cpus.size();
}

void LocalHost::wake_through(const transport::Network& network) {
  const int mine = network.waker();
  const auto wakers = ranks_.all_gather(std::as_bytes(std::span(&mine, 1)));
  wakers_.resize(wakers.size());
  for (int peer = 0; peer < size(); ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    if (same_process(peer)) {
      int theirs = -1;
      std::memcpy(&theirs, wakers[at].data(), sizeof(theirs));
      wakers_[at].reset(fcntl(theirs, F_DUPFD_CLOEXEC, 0));
    } else if (!ranks_.send_fd(peer, std::as_bytes(std::span(&mine, 1)), mine)) {
      throw Error(ErrorCode::resource, "rank " + std::to_string(rank()) +
                                           " of this host cannot pass its file descriptor to the "
                                           "other ranks\nraise the limit of open files "
                                           "(ulimit -n)");
    }
  }
  ranks_.all_gather({});  // all are sent, and no pid has been reused
  while (auto received = ranks_.receive_fd()) {
    wakers_[static_cast<std::size_t>(received->from)].reset(received->fd);
  }
  std::vector<int> descriptors;
  for (const UniqueFd& waker : wakers_) {
    if (!waker) {
      throw Error(ErrorCode::resource,
                  "no file descriptor is free to wake another rank of this host\nraise the limit "
                  "of open files "
                  "(ulimit -n)");
    }
    descriptors.push_back(waker.get());
  }
  event_counts_.wake_through(std::move(descriptors));
}

void LocalHost::leave() noexcept {
  event_counts_.of(rank()).left.store(1, std::memory_order_release);
  event_counts_.notify_all();
}

// Returns true if the process has begun to end. It frees its memory first, and closes its
// connections later.
bool LocalHost::is_ending(int rank) noexcept {
  return memory_.liveness(rank).has_ended() && !has_left(rank);
}

std::optional<Death> LocalHost::find_ending() {
  for (int rank = 0; rank < size(); ++rank) {
    if (is_ending(rank)) {
      std::string how = how_it_is_ending(ranks_.peer(rank).pid);
      if (!how.empty()) {
        return Death{rank, std::move(how)};
      }
    }
  }
  return std::nullopt;
}

bool LocalHost::find_death(std::optional<Death>& death) {
  const std::unique_lock lock(use_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  death = find_ending();
  if (!death) {
    death = ranks_.find_death();
  }
  return true;
}

bool LocalHost::is_dead(int rank) {
  if (same_process(rank)) {
    return false;
  }
  if (is_ending(rank)) {
    return true;
  }
  const std::lock_guard lock(use_);
  return ranks_.is_dead(rank);
}

bool LocalHost::announce(std::uint32_t number, std::size_t bytes, int fd) noexcept {
  const std::lock_guard lock(use_);
  const Note note{.number = number, .bytes = bytes};
  try {
    for (int peer = 0; peer < size(); ++peer) {
      if (!same_process(peer) && !ranks_.send_fd(peer, bytes_of(note), fd)) {
        return false;
      }
    }
  } catch (const Error&) {
    return false;  // a dead peer: the next operation reports it
  }
  return true;
}

void LocalHost::drain_announcements() {
  const std::lock_guard lock(use_);
  while (auto received = ranks_.receive_fd()) {
    const UniqueFd memory(received->fd);
    Note note;
    if (received->note.size() != sizeof(note)) {
      continue;
    }
    std::memcpy(&note, received->note.data(), sizeof(note));
    if (note.kind != Note::kRegion) {
      segments_[{received->from, note.kind, note.name}] =
          std::make_shared<shm::Mapping>(memory.get(), note.bytes);
    } else if (memory.get() >= 0) {
      regions_.learn(received->from, note.number, note.bytes, memory.get());
    } else if (memory_.abort_record().state.load(std::memory_order_acquire) == 0) {
      // If the world has ended, the memory stays mapped here, because this rank may still be
      // reading it; its owner knows that.
      regions_.forget(received->from, note.number);
    }
  }
}

bool LocalHost::send_segment(int to, const SegmentName& name, const shm::Mapping& mapping, int fd) {
  const Note note{
      .kind = static_cast<std::uint32_t>(name.kind), .bytes = mapping.bytes(), .name = name.number};
  const std::lock_guard lock(use_);
  return ranks_.send_fd(to, bytes_of(note), fd);
}

std::shared_ptr<shm::Mapping> LocalHost::take_segment(int from, const SegmentName& name) {
  regions_.drain();  // takes its lock before ours, as everywhere
  const std::lock_guard lock(use_);
  const auto found = segments_.find({from, static_cast<std::uint32_t>(name.kind), name.number});
  if (found == segments_.end()) {
    return nullptr;
  }
  auto mapping = std::move(found->second);
  segments_.erase(found);
  return mapping;
}

}  // namespace unisono::comm
