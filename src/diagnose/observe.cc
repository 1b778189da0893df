#include "diagnose/observe.h"

#include <cstring>
#include <memory>

#include "bootstrap/host_memory.h"
#include "diagnose/rank_label.h"

namespace unisono::comm {
namespace {

constexpr int kMostRanks = 1 << 16;  // more than any real world has
constexpr int kMostRanksOfHost = 4096;

// An aligned copy of the beginning of a segment.
class Copy {
 public:
  Copy(const ReadSegment& read, std::size_t offset, std::size_t bytes)
      : lines_((bytes + shm::kLine - 1) / shm::kLine) {
    complete_ = read(offset, std::as_writable_bytes(std::span(lines_)).first(bytes));
  }
  bool complete() const { return complete_; }
  template <typename T>
  const T& at(std::size_t offset) const {
    return *reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(lines_.data()) + offset);
  }

 private:
  struct alignas(shm::kLine) Line {
    std::byte bytes[shm::kLine];
  };
  std::vector<Line> lines_;
  bool complete_ = false;
};

ObservedRank observe_rank(const Copy& copy, const GroupLayout& layout, std::size_t ranks,
                          std::size_t rank) {
  const auto world_rank = [&](std::size_t of) -> int {
    return copy.at<std::int32_t>(layout.members + of * sizeof(std::int32_t));
  };
  const auto& recorder = copy.at<FlightRecorder>(layout.recorders + rank * sizeof(FlightRecorder));
  ObservedRank observed{.world_rank = world_rank(rank),
                        .newest = newest_record(recorder),
                        .waiting = read_wait(recorder),
                        .waited_most_for = recorder.wait.most_for - 1,
                        .label = read_label(recorder.label)};
  for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
    const auto& counts =
        copy.at<CallCounts>(layout.calls + (rank * kCallKinds + kind) * sizeof(CallCounts));
    observed.calls.push_back({.calls = counts.calls,
                              .bytes = counts.bytes,
                              .moving_ns = counts.short_ns + counts.long_ns,
                              .waited_ns = counts.waited_ns,
                              .since_ns = counts.since_ns});
    observed.waited_ns += counts.waited_ns;
  }
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    const auto waited_ns = copy.at<std::uint64_t>(layout.waits + rank * layout.waits_row +
                                                  peer * sizeof(std::uint64_t));
    if (waited_ns != 0) {
      observed.waited_for_ns.emplace_back(world_rank(peer), waited_ns);
    }
  }
  return observed;
}

std::optional<ObservedGroup> observe_group_at(const ReadSegment& read, std::size_t offset) {
  const Copy header(read, offset, sizeof(GroupHeader));
  const auto& group = header.at<GroupHeader>(0);
  const int ranks = group.ranks;
  if (!header.complete() || group.magic != kGroupMagic || ranks < 1 || group.size < ranks ||
      ranks > kMostRanksOfHost || group.size > kMostRanks) {
    return std::nullopt;
  }
  const GroupLayout layout(ranks);
  const Copy copy(read, offset, layout.lanes);
  if (!copy.complete()) {
    return std::nullopt;
  }
  ObservedGroup observed{
      .id = group.id, .world = group.world, .size = group.size, .first = group.first};
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    observed.ranks.push_back(observe_rank(copy, layout, static_cast<std::size_t>(ranks), rank));
  }
  return observed;
}

std::string abort_text(const AbortRecord& record) {
  if (record.state.load(std::memory_order_acquire) != 2) {
    return {};
  }
  return {record.text, strnlen(record.text, sizeof(record.text))};
}

}  // namespace

std::optional<ObservedWorld> observe_world(const ReadSegment& read) {
  const Copy first(read, 0, sizeof(AbortRecord) + sizeof(WorldHeader));
  const auto& header = first.at<WorldHeader>(WorldLayout(1).header);
  const int ranks = header.ranks;
  if (!first.complete() || header.magic != kWorldMagic || ranks < 1 || ranks > kMostRanks) {
    return std::nullopt;
  }
  const WorldLayout layout(ranks);
  const Copy copy(read, 0, layout.group);
  auto group = observe_group_at(read, layout.group);
  if (!copy.complete() || !group || group->ranks.size() != static_cast<std::size_t>(ranks)) {
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(group->size);
  ObservedWorld world{.job = {header.job, strnlen(header.job, sizeof(header.job))},
                      .pids = std::vector<int>(size),
                      .left = std::vector<bool>(size),
                      .labels = std::vector<std::string>(size),
                      .abort = abort_text(copy.at<AbortRecord>(0)),
                      .group = std::move(*group)};
  for (std::size_t here = 0; here < static_cast<std::size_t>(ranks); ++here) {
    const auto rank = static_cast<std::size_t>(world.group.ranks[here].world_rank);
    if (rank >= size) {
      return std::nullopt;
    }
    world.pids[rank] = copy.at<std::int32_t>(layout.pids + here * sizeof(std::int32_t));
    world.left[rank] =
        copy.at<shm::EventCount>(layout.event_counts + shm::EventCountLayout(ranks).event_counts +
                                 here * sizeof(shm::EventCount))
            .left != 0;
    world.labels[rank] = read_label(copy.at<RankLabel>(layout.labels + here * sizeof(RankLabel)));
  }
  return world;
}

std::optional<ObservedGroup> observe_group(const ReadSegment& read) {
  return observe_group_at(read, 0);
}

}  // namespace unisono::comm
