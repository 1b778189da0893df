#include "comm/world.h"

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

namespace unisono::comm {
namespace {

constexpr std::size_t kGuardBytes = 4096;

// What travels with the descriptor of a region or of a group's segment.
struct Note {
  enum class Kind : std::uint32_t { region = 1, group = 2, subgroup = 3 };
  Kind kind = Kind::region;
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;  // of a subgroup
};

std::span<const std::byte> bytes_of(const Note& note) {
  return std::as_bytes(std::span(&note, 1));
}

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

}  // namespace

std::shared_ptr<World> World::connect(const ConnectOptions& options) {
  const ConnectOptions complete = resolve(options);
  // What may be refused comes before anyone waits.
  auto profile = std::make_unique<Profile>(Profile::find(complete.profile));
  static_cast<void>(parse_wait_policy(complete.wait, {}));
  return std::make_shared<World>(complete, std::move(profile), LocalWorld::join(complete));
}

World::World(const ConnectOptions& options, std::unique_ptr<Profile> profile,
             std::unique_ptr<LocalWorld> local)
    : options_(options),
      profile_(std::move(profile)),
      local_(std::move(local)),
      size_(local_->size()) {
  host_.rank = local_->rank();
  exchange_memory();
  const shm::WorldLayout layout(size_);
  std::byte* world = memory_->data();
  record_ = reinterpret_cast<shm::AbortRecord*>(world);
  bells_ = std::make_unique<shm::Bells>(world, size_);
  pool_ = std::make_unique<shm::Pool>(world + layout.pools +
                                      static_cast<std::size_t>(rank()) * shm::kPoolBytes);
  regions_ = std::make_unique<shm::Regions>(
      rank(),
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
  host_.lenders = &lenders_;
  for (int peer = 0; peer < size_; ++peer) {
    host_.pools.push_back(world + layout.pools + static_cast<std::size_t>(peer) * shm::kPoolBytes);
    host_.same_process.push_back(local_->peer(peer).same_process);
    host_.pids.push_back(local_->peer(peer).pid);
  }
  find_who_can_fetch();
  find_crowding();
  choose_wait_policy();
  introduce();
  guard_against_fork();
  local_->all_gather({});  // nobody sends before everybody can be woken
}

World::~World() {
  if (!same_process()) {
    static_cast<void>(progress_.release());  // NOLINT(bugprone-unused-return-value)
  } else {
    progress_.reset();
    bells_->bell(rank()).left.store(1, std::memory_order_release);
    bells_->ring_all();
  }
  munmap(const_cast<char*>(fork_guard_), kGuardBytes);
}

void World::guard_against_fork() {
  void* page =
      mmap(nullptr, kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, kGuardBytes, MADV_WIPEONFORK) != 0) {
    throw Error(ErrorCode::resource, "no page for the fork guard\ncheck the limit on memory");
  }
  fork_guard_ = static_cast<char*>(page);
  *fork_guard_ = 1;
}

void World::exchange_memory() {
  const std::size_t bytes = shm::WorldLayout(size_).bytes;
  shm::Descriptor created;
  if (rank() == 0) {
    created = shm::create_memory("unisono-world", bytes);
  }
  const shm::Descriptor memory(local_->broadcast_fd(created.get()));
  int first = 0;
  while (!local_->peer(first).same_process) {
    ++first;
  }
  MappingNote note;
  if (first == rank()) {
    memory_ = std::make_shared<shm::Mapping>(memory.get(), bytes);
    note.mapping = &memory_;
  }
  const auto notes = local_->all_gather(std::as_bytes(std::span(&note, 1)));
  if (first != rank()) {
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
    host_.can_fetch.push_back(row[static_cast<std::size_t>(rank())] == std::byte{1});
  }
}

void World::find_crowding() {
  std::set<int> cpus;
  for (int peer = 0; peer < size_; ++peer) {
    cpus.insert(local_->peer(peer).cpus.begin(), local_->peer(peer).cpus.end());
  }
  crowded_ = static_cast<std::size_t>(size_) > cpus.size();
}

void World::choose_wait_policy() {
  wait_policy_ = built_in_wait(crowded_);
  if (const model::WaitChoice* found = profile_->choices().find_wait(size_, crowded_)) {
    wait_policy_ = found->policy;
  }
  wait_policy_ = parse_wait_policy(options_.wait, wait_policy_);
}

void World::introduce() noexcept {
  const shm::WorldLayout layout(size_);
  auto& pids = *reinterpret_cast<std::atomic<std::int32_t>*>(
      host_.world + layout.pids + static_cast<std::size_t>(rank()) * sizeof(std::int32_t));
  pids.store(getpid(), std::memory_order_relaxed);
  if (rank() == 0) {
    auto& header = *reinterpret_cast<shm::WorldHeader*>(host_.world + layout.header);
    header.ranks.store(size_, std::memory_order_relaxed);
    options_.job.copy(header.job, sizeof(header.job) - 1);
    header.magic.store(shm::kWorldMagic, std::memory_order_release);
  }
}

std::byte* World::first_group() const noexcept {
  return memory_->data() + shm::WorldLayout(size_).group;
}

bool World::announce(std::uint32_t number, std::size_t bytes, int fd) noexcept {
  const std::lock_guard lock(local_use_);
  const Note note{.kind = Note::Kind::region, .number = number, .bytes = bytes};
  try {
    for (int peer = 0; peer < size_; ++peer) {
      if (!host_.same_process[static_cast<std::size_t>(peer)] &&
          !local_->send_fd(peer, bytes_of(note), fd)) {
        return false;
      }
    }
  } catch (const Error&) {
    return false;  // a dead peer: the next operation says so
  }
  return true;
}

void World::drain_announcements() {
  const std::lock_guard lock(local_use_);
  while (auto received = local_->receive_fd()) {
    const shm::Descriptor memory(received->fd);
    Note note;
    if (received->note.size() != sizeof(note)) {
      continue;
    }
    std::memcpy(&note, received->note.data(), sizeof(note));
    if (note.kind == Note::Kind::group) {
      segments_[{received->from, note.number}] =
          std::make_shared<shm::Mapping>(memory.get(), note.bytes);
    } else if (note.kind == Note::Kind::subgroup) {
      met_[{received->from, note.id}] = std::make_shared<shm::Mapping>(memory.get(), note.bytes);
    } else if (memory.get() >= 0) {
      regions_->learn(received->from, note.number, note.bytes, memory.get());
    } else {
      regions_->forget(received->from, note.number);
    }
  }
}

World::SegmentOffer World::offer_segment(std::span<const int> members, std::size_t bytes,
                                         std::shared_ptr<shm::Mapping>& mapping) {
  const shm::Descriptor memory = shm::create_memory("unisono-group", bytes);
  mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
  const std::lock_guard lock(local_use_);
  const Note note{.kind = Note::Kind::group, .number = next_segment_++, .bytes = bytes};
  for (const int member : members) {
    if (!host_.same_process[static_cast<std::size_t>(member)] &&
        !local_->send_fd(member, bytes_of(note), memory.get())) {
      throw Error(ErrorCode::resource, "rank " + std::to_string(member) +
                                           " does not read its announcements"
                                           "\nsplit fewer groups at once");
    }
  }
  return {.number = note.number, .mapping = &mapping};
}

std::shared_ptr<shm::Mapping> World::take_segment(int offerer, const SegmentOffer& offer) {
  if (host_.same_process[static_cast<std::size_t>(offerer)]) {
    return *offer.mapping;
  }
  regions_->drain();  // which holds its lock before ours, as everywhere
  const std::lock_guard lock(local_use_);
  const auto found = segments_.find({offerer, offer.number});
  if (found == segments_.end()) {
    throw Error(ErrorCode::internal,
                "the segment of a new group did not come from rank " + std::to_string(offerer));
  }
  auto mapping = std::move(found->second);
  segments_.erase(found);
  return mapping;
}

std::shared_ptr<shm::Mapping> World::meet_segment(std::span<const int> members, std::size_t bytes,
                                                  std::uint64_t id) {
  const int first = members.front();
  if (first == rank()) {
    const shm::Descriptor memory = shm::create_memory("unisono-group", bytes);
    auto mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
    const Note note{.kind = Note::Kind::subgroup, .bytes = bytes, .id = id};
    for (const int member : members.subspan(1)) {
      wait_to_meet(member, [&] {
        const std::lock_guard lock(local_use_);
        return local_->send_fd(member, bytes_of(note), memory.get());
      });
    }
    return mapping;
  }
  std::shared_ptr<shm::Mapping> mapping;
  wait_to_meet(first, [&] {
    regions_->drain();
    const std::lock_guard lock(local_use_);
    if (const auto found = met_.find({first, id}); found != met_.end()) {
      mapping = std::move(found->second);
      met_.erase(found);
    }
    return mapping != nullptr;
  });
  return mapping;
}

void World::wait_to_meet(int peer, const std::function<bool()>& met) {
  const auto start = std::chrono::steady_clock::now();
  while (!met()) {
    look_for_deaths();
    if (aborted()) {
      throw_abort({});
    }
    const auto waited = std::chrono::steady_clock::now() - start;
    if (options_.connect_timeout_ms > 0 &&
        waited > std::chrono::milliseconds(options_.connect_timeout_ms)) {
      throw Error(ErrorCode::connection,
                  "rank " + std::to_string(peer) + " does not make the group that rank " +
                      std::to_string(rank()) + " waits for\nall members must call subgroup()",
                  {.rank = rank(), .peer = peer});
    }
    usleep(50);
  }
}

void World::raise(ErrorCode code, int culprit, const std::string& text) noexcept {
  std::uint32_t none = 0;
  if (!record_->state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) {
    return;
  }
  record_->code = static_cast<std::uint32_t>(code);
  record_->rank = culprit;
  record_->reporter = rank();
  const std::size_t length = std::min(text.size(), sizeof(record_->text) - 1);
  std::memcpy(record_->text, text.data(), length);
  record_->text[length] = '\0';
  record_->state.store(2, std::memory_order_release);
  bells_->ring_all();
}

void World::raise(const std::exception& error) noexcept {
  try {
    const std::string who = "rank " + std::to_string(rank()) + ": ";
    if (const auto* ours = dynamic_cast<const Error*>(&error)) {
      const std::string code = std::string(to_string(ours->code())) + ": ";
      const std::string_view text = ours->what();
      raise(ours->code(), rank(), who + std::string(text.substr(code.size())));
    } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
      raise(ErrorCode::resource, rank(),
            who + "out of memory\ncheck the limits on memory (ulimit -v, cgroup)");
    } else {
      raise(ErrorCode::internal, rank(), who + error.what());
    }
  } catch (const std::bad_alloc&) {
    raise(ErrorCode::resource, rank(), {});  // not even for the text
  }
}

void World::throw_abort(ErrorContext context) const {
  // The writer may be between claiming the record and completing it; if it died there, say so.
  for (int tries = 0; record_->state.load(std::memory_order_acquire) != 2; ++tries) {
    if (tries > 2000) {
      throw Error(ErrorCode::peer_lost,
                  "a rank died while it reported an error\nstart the job again",
                  std::move(context));
    }
    usleep(1000);
  }
  context.rank = rank();
  context.peer = record_->rank;
  throw Error(static_cast<ErrorCode>(record_->code), record_->text, std::move(context));
}

void World::look_for_deaths() noexcept {
  const std::unique_lock lock(local_use_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return;
  }
  try {
    if (const auto death = local_->find_death()) {
      raise(ErrorCode::peer_lost, death->rank,
            "rank " + std::to_string(death->rank) + " (pid " +
                std::to_string(local_->peer(death->rank).pid) + ") is gone: " + death->how +
                "\nlook at its last output; the other ranks cannot go on without it");
    }
  } catch (const std::exception& error) {
    raise(error);
  }
}

}  // namespace unisono::comm
