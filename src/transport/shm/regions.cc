#include "transport/shm/regions.h"

#include <algorithm>
#include <utility>

namespace unisono::shm {

Regions::Regions(int rank, Announce announce, Drain drain)
    : rank_(rank), announce_(std::move(announce)), drain_(std::move(drain)), list_(nullptr) {
  replace({});
}

void Regions::replace(List list) {
  lists_.push_back(std::make_unique<const List>(std::move(list)));
  list_.store(lists_.back().get(), std::memory_order_release);
}

std::uint32_t Regions::add(const std::byte* base, std::size_t bytes, int fd) {
  const std::lock_guard lock(changing_);
  drain_();  // ranks that only register must not fill each other's sockets
  const std::uint32_t number = next_number_++;
  if (!announce_(number, bytes, fd)) {
    announce_(number, 0, -1);  // to those who were told
    return 0;
  }
  List list = *list_.load(std::memory_order_relaxed);
  list.push_back({.base = base, .bytes = bytes, .number = number, .owner = rank_});
  replace(std::move(list));
  return number;
}

void Regions::remove(std::uint32_t number) noexcept {
  const std::lock_guard lock(changing_);
  forget(rank_, number);
  // A peer that is not told keeps a mapping of unused memory until the world ends, no more.
  announce_(number, 0, -1);
}

bool Regions::overlaps(const void* data, std::size_t bytes) const noexcept {
  const List* list = list_.load(std::memory_order_acquire);
  const auto* first = static_cast<const std::byte*>(data);
  return std::any_of(list->begin(), list->end(), [&](const Region& region) {
    return region.owner == rank_ && first < region.base + region.bytes &&
           region.base < first + bytes;
  });
}

const Region* Regions::find(int owner, std::uint32_t number) const noexcept {
  const List* list = list_.load(std::memory_order_acquire);
  const auto found = std::find_if(list->begin(), list->end(), [&](const Region& region) {
    return region.owner == owner && region.number == number;
  });
  return found == list->end() ? nullptr : &*found;
}

const Region* Regions::of_peer(int owner, std::uint32_t number) noexcept {
  const Region* region = find(owner, number);
  if (region == nullptr) {
    drain();
    region = find(owner, number);
  }
  return region;
}

void Regions::drain() {
  const std::lock_guard lock(changing_);
  drain_();
}

void Regions::learn(int owner, std::uint32_t number, std::size_t bytes, int fd) {
  const std::lock_guard lock(changing_);
  const auto [mapped, is_new] = mapped_.try_emplace({owner, number}, fd, bytes);
  if (!is_new) {
    return;
  }
  List list = *list_.load(std::memory_order_relaxed);
  list.push_back({.base = mapped->second.data(), .bytes = bytes, .number = number, .owner = owner});
  replace(std::move(list));
}

void Regions::forget(int owner, std::uint32_t number) {
  const std::lock_guard lock(changing_);
  List list = *list_.load(std::memory_order_relaxed);
  std::erase_if(
      list, [&](const Region& region) { return region.owner == owner && region.number == number; });
  replace(std::move(list));
  mapped_.erase({owner, number});
}

}  // namespace unisono::shm
