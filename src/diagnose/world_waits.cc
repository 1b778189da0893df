#include "diagnose/world_waits.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <set>
#include <string>

#include "bootstrap/hosts.h"
#include "bootstrap/local_host.h"

namespace unisono::comm {

namespace {

std::string waited_for(const WaitTarget& wait) {
  return "waits for " +
         (wait.peer < 0 ? std::string("any rank") : "rank " + std::to_string(wait.peer));
}

}  // namespace

std::string describe(const WaitTarget& transfer) {
  return waited_for(transfer) +
         (transfer.what == WaitTarget::What::send ? " in a send" : " in a recv") + ", tag " +
         std::to_string(transfer.place);
}

std::string describe(const WorldWaiting& waiting) {
  const bool collects = waiting.waiting.what == WaitTarget::What::collective;
  const std::string text = collects ? waited_for(waiting.waiting) + " in " +
                                          std::string(to_string(waiting.collective)) + " #" +
                                          std::to_string(waiting.sequence)
                                    : describe(waiting.waiting) + ",";
  return text + " of a group of " + std::to_string(waiting.group_size) + ", rank " +
         std::to_string(waiting.group_first) + " its first";
}

void WorldWaits::note(const WorldWaiting& waiting) noexcept {
  WorldWait& line = host_.memory().world_wait(host_.rank());
  const std::uint32_t call = code_of(waiting);
  const std::int64_t noted = line.since_ns.load(std::memory_order_relaxed);
  const std::int64_t since = waiting.waiting.since_ns;
  const bool is_same = line.group.load(std::memory_order_relaxed) == waiting.group &&
                       line.sequence.load(std::memory_order_relaxed) == waiting.sequence &&
                       line.peer.load(std::memory_order_relaxed) == waiting.waiting.peer &&
                       line.call.load(std::memory_order_relaxed) == call;
  if (is_same && noted != 0 && (since == 0 || since == noted)) {
    return;
  }
  // 0 while the line is being written: of() reads the time before and after the rest.
  line.since_ns.store(0, std::memory_order_relaxed);
  line.group.store(waiting.group, std::memory_order_release);
  line.sequence.store(waiting.sequence, std::memory_order_release);
  line.peer.store(waiting.waiting.peer, std::memory_order_release);
  line.call.store(call, std::memory_order_release);
  line.place.store(waiting.waiting.place, std::memory_order_release);
  line.group_size.store(waiting.group_size, std::memory_order_release);
  line.group_first.store(waiting.group_first, std::memory_order_release);
  line.behind.store(0, std::memory_order_release);
  line.since_ns.store(since == 0 ? flight_clock_ns() : since, std::memory_order_release);
}

void WorldWaits::end(std::uint64_t group) noexcept {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
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
  WorldWaiting waiting{.group = line.group.load(std::memory_order_acquire),
                       .group_size = line.group_size.load(std::memory_order_acquire),
                       .group_first = line.group_first.load(std::memory_order_acquire),
                       .sequence = line.sequence.load(std::memory_order_acquire),
                       .waiting = {.peer = line.peer.load(std::memory_order_acquire),
                                   .place = line.place.load(std::memory_order_acquire),
                                   .since_ns = since},
                       .name_ns = since,
                       .behind = Behind::of(line.behind.load(std::memory_order_acquire))};
  set_code(waiting, line.call.load(std::memory_order_acquire));
  return line.since_ns.load(std::memory_order_relaxed) == since ? std::optional(waiting)
                                                                : std::nullopt;
}

void WorldWaits::stand_behind(std::int64_t name_ns, Behind behind) noexcept {
  WorldWait& line = host_.memory().world_wait(host_.rank());
  if (line.since_ns.load(std::memory_order_relaxed) == name_ns) {
    line.behind.store(behind.code(), std::memory_order_release);
  }
}

WorldWaits::Circle WorldWaits::deadlock(int rank) const {
  Circle ranks;
  std::vector<bool> passed(static_cast<std::size_t>(hosts_.size()));
  int next = rank;
  std::int64_t name_ns = 0;
  while (next >= 0 && !passed[static_cast<std::size_t>(next)]) {
    const auto waiting = of(next);
    const bool is_meant = waiting && (name_ns == 0 || waiting->name_ns == name_ns);
    if (!is_meant || !waiting->alone || waiting->behind.name_ns == 0) {
      return {};
    }
    passed[static_cast<std::size_t>(next)] = true;
    ranks.emplace_back(next, *waiting);
    name_ns = waiting->behind.name_ns;
    next = waiting->waiting.peer;
  }
  const auto begin = std::find_if(ranks.begin(), ranks.end(),
                                  [next](const auto& one) { return one.first == next; });
  // If all ranks of the cycle are in one call, the call is merely in progress.
  const bool differ = std::any_of(
      begin, ranks.end(), [](const auto& one) { return one.second.behind.in_another_call; });
  if (begin == ranks.end() || begin->second.name_ns != name_ns || !differ) {
    return {};
  }
  ranks.erase(ranks.begin(), begin);
  std::rotate(ranks.begin(),
              std::min_element(ranks.begin(), ranks.end(),
                               [](const auto& a, const auto& b) { return a.first < b.first; }),
              ranks.end());
  return ranks;
}

void WorldWaits::ask_along(int rank) noexcept {
  constexpr int kMostAsked = 64;  // longer chains occur only within one call
  if (remote_ == nullptr) {
    return;
  }
  int asked = 0;
  auto waiting = of(rank);
  for (int hops = 0; waiting && waiting->waiting.peer >= 0 && hops < hosts_.size(); ++hops) {
    const int peer = waiting->waiting.peer;
    const auto theirs = of(peer);
    const bool linked = theirs && waiting->behind.name_ns == theirs->name_ns;
    if (!hosts_.is_here(peer) && !(linked && theirs->behind.name_ns != 0)) {
      tell({&peer, 1}, true);
      if (++asked == kMostAsked) {
        return;
      }
    }
    if (peer == rank) {
      return;
    }
    waiting = theirs;
  }
}

void WorldWaits::tell(std::span<const int> ranks, bool ask) noexcept {
  if (remote_ == nullptr) {
    return;
  }
  if (const auto mine = of(hosts_.here()[static_cast<std::size_t>(host_.rank())])) {
    remote_->tell_wait(ranks, *mine, ask);
  }
}

Answer WorldWaits::answer_of(int peer) const noexcept {
  return hosts_.is_here(peer) || remote_ == nullptr ? Answer{} : remote_->answer_of(peer);
}

bool WorldWaits::is_quiet(int peer, std::int64_t name_ns) const noexcept {
  if (hosts_.is_here(peer)) {
    return true;  // data sent before the wait began has arrived, and only needs to be polled
  }
  const Answer answer = answer_of(peer);
  const transport::Frames mine = remote_->frames(peer);
  return answer.name_ns == name_ns && answer.frames.sent == mine.received &&
         answer.frames.received == mine.sent;
}

void WorldWaits::answer() noexcept {
  if (remote_ == nullptr) {
    return;
  }
  try {
    const std::lock_guard lock(answering_);
    const auto mine = of(hosts_.here()[static_cast<std::size_t>(host_.rank())]);
    if (!mine) {
      return;
    }
    for (const auto& [rank, question] : remote_->take_questions()) {
      if (Asked& asked = asked_[rank]; asked.question != question) {
        asked = {.question = question};
      }
      tell({&rank, 1}, false);
      answers_.fetch_add(1, std::memory_order_relaxed);
    }
    for (auto next = asked_.begin(); next != asked_.end();) {
      auto& [rank, asked] = *next;
      const transport::Frames frames = remote_->frames(rank);
      if (!mine->alone || mine->name_ns != asked.name_ns) {
        asked.name_ns = mine->alone ? mine->name_ns : 0;
        asked.received = frames.received;
        ++next;
        continue;
      }
      remote_->answer(rank, *mine,
                      {.name_ns = mine->name_ns,
                       .question = asked.question,
                       .has_entered = remote_->has_entered(asked.question),
                       .frames = {.sent = frames.sent, .received = asked.received}});
      next = asked_.erase(next);
    }
  } catch (const std::bad_alloc&) {
    return;  // an error text will only have less information
  }
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
      ranks.emplace_back(next, WorldWaiting{});  // it waits for no rank, as far as known
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
    return {};  // it is not in a cycle, although it may wait for ranks that are
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
