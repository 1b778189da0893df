#include "transport/shm/regions.h"

#include <utility>

namespace unisono::shm {

Regions::Regions(int rank, Announce announce, Drain drain)
    : rank_(rank), announce_(std::move(announce)), drain_(std::move(drain)) {}

std::uint32_t Regions::add(const std::byte* base, std::size_t bytes, int fd,
                           const std::byte* in_process) {
  const std::lock_guard lock(changing_);
  drain_();  // ranks that only register must not fill each other's sockets
  const std::uint32_t number = next_number_++;
  if (!announce_(number, bytes, fd)) {
    announce_(number, 0, -1);  // announced to the ranks that know it
    return 0;
  }
  table_.add(
      {.base = base, .in_process = in_process, .bytes = bytes, .number = number, .owner = rank_});
  return number;
}

void Regions::remove(std::uint32_t number) noexcept {
  const std::lock_guard lock(changing_);
  forget(rank_, number);
  // If the announcement fails, the peer keeps a mapping of unused memory until the world ends; that
  // is harmless.
  announce_(number, 0, -1);
}

bool Regions::overlaps(const void* data, std::size_t bytes) const noexcept {
  const auto* first = static_cast<const std::byte*>(data);
  const auto overlapping = [&](const SharedRegion& region) {
    return region.owner == rank_ && first < region.base + region.bytes &&
           region.base < first + bytes;
  };
  return table_.find(overlapping).has_value();
}

std::optional<SharedRegion> Regions::find(int owner, std::uint32_t number) const noexcept {
  return table_.find(
      [&](const SharedRegion& region) { return region.owner == owner && region.number == number; });
}

std::optional<SharedRegion> Regions::of_peer(int owner, std::uint32_t number) noexcept {
  std::optional<SharedRegion> region = find(owner, number);
  if (!region) {
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
  table_.add({.base = mapped->second.data(),
              .in_process = nullptr,
              .bytes = bytes,
              .number = number,
              .owner = owner});
}

void Regions::forget(int owner, std::uint32_t number) noexcept {
  const std::lock_guard lock(changing_);
  table_.remove(owner, number);
  mapped_.erase({owner, number});
}

}  // namespace unisono::shm
