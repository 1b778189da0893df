#include "comm/world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/env.h"
#include "bootstrap/wire.h"

namespace unisono::comm {
namespace {

constexpr std::size_t kGuardBytes = 4096;
// Where each look is a system call, so many take longer than to be woken.
constexpr int kLooksOverNetwork = 100;
constexpr int kLeastConnectMs = 1000;
// For a peer that is slow to read the last words.
constexpr int kLeaveMs = 2000;
constexpr int kLostHostMs = 200;  // of the culprit's host, which may be lost with it
constexpr int kSilentMs = 500;    // a network that has parted loses more than the culprit

// Ranks of one process use one mapping: the first of them makes it and the others share its
// ownership.
struct MappingNote {
  const std::shared_ptr<shm::Mapping>* mapping = nullptr;
};

// Something to read in a rank's memory, and what it must be: another process may have its number.
struct Probe {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
};

// Where the Yama module restricts it, the kernel logs every attempt that it refuses.
bool may_read_processes() {
  std::ifstream scope("/proc/sys/kernel/yama/ptrace_scope");
  int restricted = 0;
  return !(scope >> restricted) || restricted == 0 || geteuid() == 0;
}

// What is nearly done may be finished.
int left_ms(const Deadline& deadline) {
  const int ms = deadline.left_ms();
  return ms < 0 ? 0 : std::max(ms, kLeastConnectMs);
}

}  // namespace

std::shared_ptr<World> World::connect(const ConnectOptions& options) {
  return connect(options, Origin());
}

std::shared_ptr<World> World::connect(const ConnectOptions& options, Origin origin) {
  ConnectOptions complete = resolve(options);
  // What may be refused comes before anyone waits.
  Given given{.profile = std::make_shared<const Profile>(Profile::find(complete.profile)),
              .recording = trace::recording_settings(),
              .origin = std::move(origin)};
  static_cast<void>(parse_wait_policy(complete.wait, {}));
  static_cast<void>(read_flag("UNISONO_QUIET"));
  const Deadline deadline = Deadline::of_timeout(complete.connect_timeout_ms);
  if (!meets_over_network(complete)) {
    return meet_here(complete, deadline, std::move(given));
  }
  NetMeeting meeting = meet_over_network(complete, given.origin.world);
  given.origin.world = std::max(given.origin.world, meeting.worlds);
  if (complete.exchange != nullptr) {  // what it refers to need not outlive the meeting
    complete.exchange = nullptr;
    complete.address.clear();  // each rank had its own
  }
  return meet_across(complete, deadline, std::move(meeting), std::move(given));
}

std::shared_ptr<World> World::meet_here(const ConnectOptions& options, const Deadline& deadline,
                                        Given given) {
  ConnectOptions here = options;
  here.connect_timeout_ms = left_ms(deadline);
  here.interrupted = given.interrupted == nullptr ? options.interrupted : given.interrupted;
  auto local = LocalWorld::join(here);
  Hosts hosts(local->rank(), local->size());
  return std::make_shared<World>(options, std::move(given),
                                 Parts{.hosts = std::move(hosts), .local = std::move(local)});
}

std::shared_ptr<World> World::meet_across(const ConnectOptions& options, const Deadline& deadline,
                                          NetMeeting meeting, Given given) {
  const Hosts& hosts = meeting.hosts;
  ConnectOptions here = options;
  here.rank = hosts.local(options.rank);
  here.size = static_cast<int>(hosts.here().size());
  here.job += "/" + options.address + "/" + std::to_string(hosts.host(options.rank));
  here.file.clear();
  here.connect_timeout_ms = left_ms(deadline);
  here.interrupted = given.interrupted == nullptr ? options.interrupted : given.interrupted;
  auto local = LocalWorld::join(here, hosts.single() ? RankNames() : RankNames(hosts.here()),
                                watch_host(meeting));
  tcp::Channels streams;
  try {
    if (!hosts.single()) {
      streams = connect_hosts(meeting, left_ms(deadline), here.interrupted);
    }
  } catch (const Error& error) {
    local->tell(error);
    throw;
  }
  return std::make_shared<World>(options, std::move(given),
                                 Parts{.hosts = std::move(meeting.hosts),
                                       .local = std::move(local),
                                       .streams = std::move(streams),
                                       .door = std::move(meeting.door),
                                       .crowded = meeting.crowded});
}

World::World(const ConnectOptions& options, Given given, Parts parts)
    : options_(options),
      profile_(std::move(given.profile)),
      rank_(parts.hosts.here()[static_cast<std::size_t>(parts.local->rank())]),
      hosts_(std::move(parts.hosts)),
      local_(std::move(parts.local)),
      door_(std::move(parts.door)),
      crowded_(parts.crowded),
      origin_(std::move(given.origin)) {
  host_.rank = local_->rank();
  if (!parts.streams.empty()) {
    connections_ = std::make_unique<tcp::Connections>(rank_, std::move(parts.streams));
    connections_->retire_before(origin_.epoch);
  }
  try {
    set_up();
  } catch (const Error& error) {
    tell_of_no_world(error);
    throw;
  }
  recorder_ = trace::Recorder::open_for(rank_, given.recording);
  if (recorder_ != nullptr) {
    recorder_->introduce(rank_, size(), options_.job, origin_.first_ranks, origin_.world);
  }
}

// With the other ranks of this host; those of other hosts wait for nobody here.
void World::set_up() {
  exchange_memory();
  const WorldLayout layout(local_->size());
  std::byte* world = memory_->data();
  record_ = reinterpret_cast<AbortRecord*>(world);
  bells_ = std::make_unique<shm::Bells>(world + layout.bells, local_->size());
  roll_call_ = std::make_unique<RollCall>(world, host_.rank, local_->size());
  pool_ = std::make_unique<shm::Pool>(world + layout.pools +
                                      static_cast<std::size_t>(host_.rank) * shm::kPoolBytes);
  regions_ = std::make_unique<shm::Regions>(
      host_.rank,
      [this](std::uint32_t number, std::size_t bytes, int fd) {
        return announce(number, bytes, fd);
      },
      [this] {
        try {
          drain_announcements();
        } catch (const std::exception& error) {
          raise(error);  // the readers of lanes cannot throw
        }
      });
  host_.world = world;
  host_.bells = bells_.get();
  host_.pool = pool_.get();
  host_.regions = regions_.get();
  host_.registry = &registry_;
  for (int peer = 0; peer < local_->size(); ++peer) {
    host_.pools.push_back(world + layout.pools + static_cast<std::size_t>(peer) * shm::kPoolBytes);
    host_.same_process.push_back(local_->peer(peer).same_process);
    host_.pids.push_back(local_->peer(peer).pid);
  }
  find_who_can_fetch();
  find_crowding();
  choose_wait_policy();
  introduce();
  guard_against_fork();
  if (!std::all_of(host_.same_process.begin(), host_.same_process.end(), std::identity())) {
    lifeline_ = std::make_unique<Lifeline>(life(host_.rank));
  }
  if (connections_ != nullptr) {
    remote_records_ = std::make_unique<RemoteRecords>(*connections_, origin_.epoch);
    exchange_bells();
  }
  agree_on_number();  // and nobody sends before everybody can be woken
}

World::~World() {
  if (!same_process()) {
    static_cast<void>(progress_.release());        // NOLINT(bugprone-unused-return-value)
    static_cast<void>(remote_records_.release());  // NOLINT(bugprone-unused-return-value)
    static_cast<void>(connections_.release());     // NOLINT(bugprone-unused-return-value)
    static_cast<void>(lifeline_.release());        // NOLINT(bugprone-unused-return-value)
  } else {
    progress_.reset();
    note_abort();
    const bool is_aborted = record_->state.load(std::memory_order_acquire) == 2;
    take_leave(is_aborted, is_aborted ? record_->rank : -1);
    bells_->bell(host_.rank).left.store(1, std::memory_order_release);
    bells_->ring_all();
    lifeline_.reset();
  }
}

void World::Unmap::operator()(volatile char* page) const noexcept {
  munmap(const_cast<char*>(page), kGuardBytes);
}

// The last words must reach the systems of the peers: a connection that is closed while bytes wait
// in either direction is reset, and loses what is on its way. Who does not hear why the world has
// ended takes this rank for the culprit; the culprit itself need not hear it.
void World::take_leave(bool is_aborted, int culprit) noexcept {
  if (connections_ == nullptr) {
    return;
  }
  connections_->leave();
  const Deadline host_deadline = Deadline::after_ms(kLostHostMs);
  const auto lost = [&](int rank) {
    return culprit >= 0 && (rank == culprit ||
                            (hosts_.host(rank) == hosts_.host(culprit) && host_deadline.passed()));
  };
  const Deadline deadline = Deadline::after_ms(kLeaveMs);
  while (!connections_->delivered(lost, is_aborted ? kSilentMs : kLeaveMs) && !deadline.passed()) {
    connections_->wait(1000);
  }
}

// A rank that waits for several hosts at once sleeps in epoll, where a futex does not wake it: its
// neighbours write to a descriptor.
void World::exchange_bells() {
  const int mine = connections_->waker();
  const auto wakers = local_->all_gather(std::as_bytes(std::span(&mine, 1)));
  wakes_.resize(wakers.size());
  for (int peer = 0; peer < local_->size(); ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    if (local_->peer(peer).same_process) {
      int theirs = -1;
      std::memcpy(&theirs, wakers[at].data(), sizeof(theirs));
      wakes_[at].reset(fcntl(theirs, F_DUPFD_CLOEXEC, 0));
    } else if (!local_->send_fd(peer, std::as_bytes(std::span(&mine, 1)), mine)) {
      throw Error(ErrorCode::resource, "rank " + std::to_string(rank()) +
                                           " cannot pass its descriptor on\nraise the limit of "
                                           "open files (ulimit -n)");
    }
  }
  local_->all_gather({});  // all are sent, and nobody's number has been used again
  while (auto received = local_->receive_fd()) {
    wakes_[static_cast<std::size_t>(received->from)].reset(received->fd);
  }
  std::vector<int> descriptors;
  for (const UniqueFd& wake : wakes_) {
    if (!wake) {
      throw Error(ErrorCode::resource,
                  "no descriptor to wake another rank of this host\nraise the limit of open files "
                  "(ulimit -n)");
    }
    descriptors.push_back(wake.get());
  }
  bells_->wake_through(std::move(descriptors));
}

bool World::sleep(const std::function<bool()>& look, int timeout_us) {
  const std::uint32_t seen = bells_->prepare(host_.rank);
  bool seen_more = true;
  try {
    seen_more = look() || aborted();
  } catch (...) {
    bells_->cancel(host_.rank);
    throw;
  }
  if (seen_more) {
    bells_->cancel(host_.rank);
    return true;
  }
  if (connections_ == nullptr) {
    bells_->sleep(host_.rank, seen, timeout_us);
    return false;
  }
  connections_->wait(timeout_us);
  bells_->cancel(host_.rank);
  if (connections_->troubles() != troubles_seen_.load(std::memory_order_relaxed)) {
    look_for_deaths();
  }
  return false;
}

void World::guard_against_fork() {
  void* page =
      mmap(nullptr, kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, kGuardBytes, MADV_WIPEONFORK) != 0) {
    throw Error(ErrorCode::resource, "no page for the fork guard\ncheck the limit on memory");
  }
  fork_guard_.reset(static_cast<char*>(page));
  *fork_guard_ = 1;
}

void World::exchange_memory() {
  const std::size_t bytes = WorldLayout(local_->size()).bytes;
  UniqueFd created;
  if (host_.rank == 0) {
    created = shm::create_memory("unisono-world", bytes);
  }
  const UniqueFd memory(local_->broadcast_fd(created.get()));
  int first = 0;
  while (!local_->peer(first).same_process) {
    ++first;
  }
  MappingNote note;
  if (first == host_.rank) {
    memory_ = std::make_shared<shm::Mapping>(memory.get(), bytes);
    note.mapping = &memory_;
  }
  const auto notes = local_->all_gather(std::as_bytes(std::span(&note, 1)));
  if (first != host_.rank) {
    std::memcpy(&note, notes[static_cast<std::size_t>(first)].data(), sizeof(note));
    memory_ = *note.mapping;
  }
  local_->all_gather({});  // the first one's pointer stays good until all have copied it
}

// Who can read whose memory: a container, a security module or other users may forbid it.
void World::find_who_can_fetch() {
  std::uint64_t value = 0;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
    throw Error(ErrorCode::resource, "no random numbers from the kernel\ncheck getrandom");
  }
  const Probe mine{.address = reinterpret_cast<std::uint64_t>(&value), .value = value};
  const auto probes = local_->all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<std::byte> reads;
  const bool may_ask = may_read_processes();
  for (std::size_t peer = 0; peer < probes.size(); ++peer) {
    Probe probe;
    std::memcpy(&probe, probes[peer].data(), sizeof(probe));
    std::uint64_t found = 0;
    const bool read = may_ask && shm::read_process(host_.pids[peer], probe.address, &found,
                                                   sizeof(found)) == sizeof(found);
    reads.push_back(static_cast<std::byte>(read && found == probe.value));
  }
  for (const auto& row : local_->all_gather(reads)) {
    host_.can_fetch.push_back(row[static_cast<std::size_t>(host_.rank)] == std::byte{1});
  }
}

void World::find_crowding() {
  std::set<int> cpus;
  for (int peer = 0; peer < local_->size(); ++peer) {
    cpus.insert(local_->peer(peer).cpus.begin(), local_->peer(peer).cpus.end());
  }
  crowded_ |= static_cast<std::size_t>(local_->size()) > cpus.size();
}

void World::choose_wait_policy() {
  wait_policy_ = built_in_wait(crowded_);
  if (!hosts_.single()) {
    wait_policy_.spin = std::min(wait_policy_.spin, kLooksOverNetwork);
  } else if (const model::WaitChoice* found = profile_->choices().find_wait(size(), crowded_)) {
    wait_policy_ = found->policy;
  }
  wait_policy_ = parse_wait_policy(options_.wait, wait_policy_);
}

void World::introduce() noexcept {
  const WorldLayout layout(local_->size());
  auto& pids = *reinterpret_cast<std::atomic<std::int32_t>*>(
      host_.world + layout.pids + static_cast<std::size_t>(host_.rank) * sizeof(std::int32_t));
  pids.store(getpid(), std::memory_order_relaxed);
  if (host_.rank == 0) {
    auto& header = *reinterpret_cast<WorldHeader*>(host_.world + layout.header);
    header.ranks.store(local_->size(), std::memory_order_relaxed);
    options_.job.copy(header.job, sizeof(header.job) - 1);
    header.magic.store(kWorldMagic, std::memory_order_release);
  }
}

// Who comes new to a job that grows does not know how many worlds it had; over the network the
// cards have said it.
void World::agree_on_number() {
  const int mine = origin_.world;
  for (const auto& theirs : local_->all_gather(std::as_bytes(std::span(&mine, 1)))) {
    int world = 0;
    std::memcpy(&world, theirs.data(), sizeof(world));
    origin_.world = std::max(origin_.world, world);
  }
}

std::byte* World::first_group() const noexcept {
  return memory_->data() + WorldLayout(local_->size()).group;
}

}  // namespace unisono::comm
