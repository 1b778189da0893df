#include "device/plans.h"

#include <algorithm>
#include <iterator>

#include "algorithms/catalog.h"
#include "base/collectives.h"
#include "base/dtypes.h"
#include "base/hash.h"
#include "device/bind.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

constexpr std::size_t kZoneBytes = std::size_t{8} << 20;
// A zone counts as full if the largest plan might not fit: 64 ranks, 64 passes with 64 sources
// each.
constexpr std::size_t kMostOfPlan = std::size_t{1} << 20;
constexpr std::uint64_t kOneShotUpTo = std::uint64_t{64} << 10;  // all_reduce bytes
constexpr std::uint64_t kFewChannelsUpTo = std::uint64_t{64} << 10;
constexpr std::uint64_t kSomeChannelsUpTo = std::uint64_t{1} << 20;
constexpr std::uint32_t kFewChannels = 2;
constexpr std::uint32_t kSomeChannels = 8;
constexpr std::uint64_t kLine = 128;
// Larger than any slice; adding to it cannot overflow.
constexpr std::uint64_t kWhole = std::uint64_t{1} << 60;

[[noreturn]] void refuse_kind(const std::string& what) {
  throw Error(ErrorCode::usage, what);
}

std::string algorithm_of(const CallShape& kind) {
  if (!kind.algorithm.empty() && kind.algorithm != "reproducible") {
    return kind.algorithm;
  }
  const bool is_short = kind.count <= kOneShotUpTo / size_of(kind.dtype);
  return kind.collective == Collective::all_reduce && is_short ? "one_shot" : "flat";
}

Schedule schedule_of(const CallShape& kind, const std::string& name, int ranks) {
  const Algorithm* algorithm = find_algorithm(kind.collective, name);
  if (algorithm == nullptr) {
    refuse_kind("no algorithm " + name + " for " + std::string(to_string(kind.collective)) +
                "\nsee unisono list");
  }
  const Shape shape = complete(
      *algorithm,
      {.ranks = ranks, .root = kind.root, .parameters = parse_parameters(*algorithm, name)});
  if (!can_serve(*algorithm, shape)) {
    refuse_kind(name + " does not support " + std::to_string(ranks) + " ranks\n" +
                std::string(algorithm->limits));
  }
  Schedule schedule = build_schedule(*algorithm, shape);
  schedule.collective = kind.collective;
  return schedule;
}

// Refuses an average of integers whose partial sums could overflow. A sum in one pass uses wide
// integers; a sum over several passes does not.
void check_average(const CallShape& kind, const std::string& name, const BoundImage& image,
                   int ranks) {
  if (kind.op != ReduceOp::avg || !is_integer(kind.dtype) ||
      traits_of(kind.dtype).sum == kind.dtype) {
    return;
  }
  for (const KernelPass& pass : image.passes) {
    if (pass.finish != 0 && pass.sources != static_cast<std::uint32_t>(ranks)) {
      refuse_kind(name + " sums in several passes, where the average of " +
                  std::string(to_string(kind.dtype)) + " would overflow\nuse flat");
    }
  }
}

std::uint64_t signature_of(const CallShape& kind, const std::string& name) {
  return Hash()
      .add(static_cast<std::uint64_t>(kind.collective))
      .add(static_cast<std::uint64_t>(kind.dtype))
      .add(static_cast<std::uint64_t>(kind.op))
      .add(static_cast<std::uint64_t>(kind.count))
      .add(static_cast<std::uint64_t>(kind.root))
      .add(static_cast<std::uint64_t>(kind.in_place))
      .add(static_cast<std::uint64_t>(kind.direct))
      .add(name)
      .value();
}

}  // namespace

Plans::Plans(Context& context, const Launch& common, std::size_t scratch_bytes)
    : context_(context), common_(common), scratch_bytes_(scratch_bytes) {
  passing_.base = context.allocate(kZoneBytes);
  kept_.base = context.allocate(kZoneBytes);
}

const Launch* Plans::find(const CallShape& kind) const {
  const auto known = plans_.find(kind);
  return known == plans_.end() ? nullptr : &known->second;
}

bool Plans::is_full() const {
  return passing_.used + kMostOfPlan > kZoneBytes;
}

const Launch& Plans::add(const CallShape& kind) {
  if (!kind.captured && is_full()) {
    std::erase_if(plans_, [](const auto& plan) { return !plan.first.captured; });
    passing_.used = 0;
  }
  const Launch launch = make(kind, kind.captured ? kept_ : passing_);
  return plans_.emplace(kind, launch).first->second;
}

std::uint64_t Plans::put(Zone& zone, const void* data, std::size_t bytes) const {
  const std::uint64_t at = zone.base + zone.used;
  const std::size_t padded = (bytes + 63) / 64 * 64;
  if (padded > kZoneBytes - zone.used) {
    throw Error(ErrorCode::resource,
                "a device group has no room for another kind of call in graphs\nmake a new group, "
                "or use fewer different calls in its graphs");
  }
  context_.upload(at, data, bytes);
  zone.used += padded;
  return at;
}

Launch Plans::make(const CallShape& kind, Zone& zone) const {
  const std::string name = algorithm_of(kind);
  const auto ranks = static_cast<int>(common_.ranks);
  const auto rank = static_cast<int>(common_.rank);
  const Schedule schedule = schedule_of(kind, name, ranks);
  const Graph graph = build_graph(schedule, {.in_place = kind.in_place, .direct = kind.direct});
  const bool by_blocks = is_v_form(kind.collective);
  if (by_blocks && !goes_by_blocks(graph, schedule)) {
    refuse_kind(name + " does not support " + std::string(to_string(kind.collective)) +
                " in device memory\nuse flat");
  }
  const BoundImage image = by_blocks
                               ? bind_blocks(graph, schedule, rank)
                               : bind_image(graph, schedule, rank,
                                            {.element = size_of(kind.dtype), .count = kind.count});
  check_average(kind, name, image, ranks);

  Launch launch = common_;
  const auto upload = [&](const auto& list) {
    return put(zone, list.data(), list.size() * sizeof(list[0]));
  };
  launch.image.passes = reinterpret_cast<const KernelPass*>(upload(image.passes));
  launch.image.operands = reinterpret_cast<const PassOperand*>(upload(image.operands));
  launch.image.waits = reinterpret_cast<const PassWait*>(upload(image.waits));
  launch.image.pass_count = static_cast<std::uint32_t>(image.passes.size());
  launch.image.exit_waits = image.exit_waits;
  launch.image.exit_wait_count = image.exit_wait_count;
  launch.image.slots = image.slots;
  launch.image.stride = image.stride;

  const std::uint64_t vector = image.most_bytes * static_cast<std::uint64_t>(schedule.chunks);
  const std::uint32_t most = common_.channels;
  launch.channels = by_blocks                     ? most
                    : vector <= kFewChannelsUpTo  ? std::min(most, kFewChannels)
                    : vector <= kSomeChannelsUpTo ? std::min(most, kSomeChannels)
                                                  : most;
  const std::uint64_t lines = (image.most_bytes + kLine - 1) / kLine;
  const std::uint64_t slice =
      by_blocks
          ? kWhole
          : std::max<std::uint64_t>(1, (lines + launch.channels - 1) / launch.channels) * kLine;
  launch.part = slice;
  if (image.slots != 0) {
    const std::uint64_t room = scratch_bytes_ / most / image.slots / kLine * kLine;
    if (room == 0) {
      refuse_kind("the scratch of a device group is too small for " + name +
                  "\nraise DeviceOptions::scratch_bytes");
    }
    launch.part = std::min(slice, room);
  }
  launch.parts = by_blocks ? 1 : (slice + launch.part - 1) / launch.part;
  launch.has_blocks = by_blocks ? 1 : 0;
  launch.signature = signature_of(kind, name);
  launch.op = static_cast<std::uint32_t>(kind.op);
  launch.multiplies = kind.op == ReduceOp::premul_sum ? 1 : 0;
  launch.divisor = static_cast<std::uint32_t>(ranks);
  return launch;
}

}  // namespace unisono::device
