// What is passed between the ranks of one host while they run: registered memory, and the segments
// of new groups.
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "comm/world.h"

namespace unisono::comm {
namespace {

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

}  // namespace

bool World::announce(std::uint32_t number, std::size_t bytes, int fd) noexcept {
  const std::lock_guard lock(local_use_);
  const Note note{.kind = Note::Kind::region, .number = number, .bytes = bytes};
  try {
    for (int peer = 0; peer < local_->size(); ++peer) {
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
    const UniqueFd memory(received->fd);
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
  const UniqueFd memory = shm::create_memory("unisono-group", bytes);
  mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
  const std::lock_guard lock(local_use_);
  const Note note{.kind = Note::Kind::group, .number = next_segment_++, .bytes = bytes};
  for (const int member : members) {
    if (hosts_.is_here(member) && !same_process_as(member) &&
        !local_->send_fd(hosts_.local(member), bytes_of(note), memory.get())) {
      throw Error(ErrorCode::resource, "rank " + std::to_string(member) +
                                           " does not read its announcements"
                                           "\nsplit fewer groups at once");
    }
  }
  return {.number = note.number, .mapping = &mapping};
}

std::shared_ptr<shm::Mapping> World::take_segment(int offerer, const SegmentOffer& offer) {
  if (same_process_as(offerer)) {
    return *offer.mapping;
  }
  regions_->drain();  // which holds its lock before ours, as everywhere
  const std::lock_guard lock(local_use_);
  const auto found = segments_.find({hosts_.local(offerer), offer.number});
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
  const std::vector<int> here = hosts_.local_of(members);
  const int first = here.front();
  if (first == host_.rank) {
    const UniqueFd memory = shm::create_memory("unisono-group", bytes);
    auto mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
    const Note note{.kind = Note::Kind::subgroup, .bytes = bytes, .id = id};
    for (const int member : std::span(here).subspan(1)) {
      wait_to_meet(hosts_.here()[static_cast<std::size_t>(member)], [&] {
        const std::lock_guard lock(local_use_);
        return local_->send_fd(member, bytes_of(note), memory.get());
      });
    }
    return mapping;
  }
  std::shared_ptr<shm::Mapping> mapping;
  wait_to_meet(hosts_.here()[static_cast<std::size_t>(first)], [&] {
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

}  // namespace unisono::comm
