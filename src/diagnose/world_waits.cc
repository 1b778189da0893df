#include "diagnose/world_waits.h"

#include <numeric>
#include <set>
#include <string>

#include "bootstrap/hosts.h"
#include "bootstrap/local_host.h"
#include "diagnose/remote_records.h"

namespace unisono::comm {

std::string describe(const WorldWaiting& waiting) {
  std::string text = "waits for " +
                     (waiting.waiting.peer < 0 ? std::string("any rank")
                                               : "rank " + std::to_string(waiting.waiting.peer)) +
                     " in ";
  if (waiting.waiting.what == WaitTarget::What::collective) {
    text += std::string(to_string(waiting.collective)) + " #" + std::to_string(waiting.sequence);
  } else {
    text += waiting.waiting.what == WaitTarget::What::send ? "a send" : "a recv";
    text += ", tag " + std::to_string(waiting.waiting.place) + ",";
  }
  return text + " of a group of " + std::to_string(waiting.group_size) + ", rank " +
         std::to_string(waiting.group_first) + " its first";
}

void WorldWaits::note(const WorldWaiting& waiting) noexcept {
  WorldWait& line = host_.memory().world_wait(host_.rank());
  const std::uint32_t call = static_cast<std::uint32_t>(waiting.waiting.what) << 8U |
                             static_cast<std::uint32_t>(waiting.collective);
  const bool is_same = line.group.load(std::memory_order_relaxed) == waiting.group &&
                       line.sequence.load(std::memory_order_relaxed) == waiting.sequence &&
                       line.peer.load(std::memory_order_relaxed) == waiting.waiting.peer &&
                       line.call.load(std::memory_order_relaxed) == call;
  if (is_same && line.since_ns.load(std::memory_order_relaxed) != 0) {
    return;
  }
  // 0 while the line is written: of() reads the time before and after the rest.
  line.since_ns.store(0, std::memory_order_relaxed);
  line.group.store(waiting.group, std::memory_order_release);
  line.sequence.store(waiting.sequence, std::memory_order_release);
  line.peer.store(waiting.waiting.peer, std::memory_order_release);
  line.call.store(call, std::memory_order_release);
  line.place.store(waiting.waiting.place, std::memory_order_release);
  line.group_size.store(waiting.group_size, std::memory_order_release);
  line.group_first.store(waiting.group_first, std::memory_order_release);
  line.since_ns.store(flight_clock_ns(), std::memory_order_release);
}

void WorldWaits::end(std::uint64_t group) noexcept {
  WorldWait& line = host_.memory().world_wait(host_.rank());
  if (line.group.load(std::memory_order_relaxed) == group) {
    line.since_ns.store(0, std::memory_order_release);
  }
}

std::optional<WorldWaiting> WorldWaits::of(int rank) const noexcept {
  if (!hosts_.is_here(rank)) {
    return remote_ == nullptr ? std::nullopt : remote_->wait_of(rank);
  }
  const WorldWait& line = host_.memory().world_wait(hosts_.local(rank));
  const std::int64_t since = line.since_ns.load(std::memory_order_acquire);
  if (since == 0) {
    return std::nullopt;
  }
  const std::uint32_t call = line.call.load(std::memory_order_acquire);
  const WorldWaiting waiting{.group = line.group.load(std::memory_order_acquire),
                             .group_size = line.group_size.load(std::memory_order_acquire),
                             .group_first = line.group_first.load(std::memory_order_acquire),
                             .sequence = line.sequence.load(std::memory_order_acquire),
                             .collective = static_cast<Collective>(call & 0xFFU),
                             .waiting = {.what = static_cast<WaitTarget::What>(call >> 8U),
                                         .peer = line.peer.load(std::memory_order_acquire),
                                         .place = line.place.load(std::memory_order_acquire),
                                         .since_ns = since}};
  return line.since_ns.load(std::memory_order_relaxed) == since ? std::optional(waiting)
                                                                : std::nullopt;
}

bool WorldWaits::holds(int rank, const WorldWaiting& waiting,
                       std::int64_t since_ns) const noexcept {
  constexpr std::int64_t kLastingNs = 100'000'000;
  const std::int64_t begun = waiting.waiting.since_ns;
  return hosts_.is_here(rank) ? flight_clock_ns() - begun >= kLastingNs : begun >= since_ns;
}

WorldWaits::Circle WorldWaits::walk(int rank, std::int64_t since_ns) const {
  Circle ranks;
  int next = rank;
  do {
    const auto waiting = of(next);
    if (!waiting || waiting->waiting.peer < 0 || !holds(next, *waiting, since_ns) ||
        static_cast<int>(ranks.size()) >= hosts_.size()) {
      ranks.emplace_back(next, WorldWaiting{});  // it waits for nobody, as far as known
      return ranks;
    }
    ranks.emplace_back(next, *waiting);
    next = waiting->waiting.peer;
  } while (next != rank);
  return ranks;
}

WorldWaits::Circle WorldWaits::circle(int rank, std::int64_t since_ns) const {
  Circle ranks = walk(rank, since_ns);
  if (ranks.back().second.waiting.peer != rank) {
    return {};  // it is not in a circle, though it may wait for ranks that are
  }
  std::set<std::uint64_t> groups;
  for (const auto& [one, waiting] : ranks) {
    groups.insert(waiting.group);
  }
  return groups.size() > 1 ? ranks : Circle{};
}

int WorldWaits::unheard(int rank, std::int64_t since_ns) const {
  const auto [last, waiting] = walk(rank, since_ns).back();
  return waiting.waiting.peer < 0 && !hosts_.is_here(last) ? last : -1;
}

std::vector<int> WorldWaits::all_ranks() const {
  std::vector<int> ranks(static_cast<std::size_t>(hosts_.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace unisono::comm
