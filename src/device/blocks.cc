#include "device/blocks.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/collectives.h"
#include "device/kernels.h"
#include "engine/call_checks.h"

namespace unisono::device {
namespace {

using Counts = std::span<const std::size_t>;

// Returns the number of elements from the start of a buffer to the end of its last block.
std::size_t end_of(Counts counts, Counts displs) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    end = std::max(end, counts[i] == 0 ? 0 : engine::offset_of(counts, displs, i) + counts[i]);
  }
  return end;
}

}  // namespace

void check_call(const Call& call, int me, int ranks) {
  const engine::Caller caller{.rank = me, .ranks = ranks, .world_rank = me};
  engine::check_shape(call, caller, size_of(call.dtype));
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    engine::refuse(call, caller, what, hint);
  };
  if (is_scan(call.collective)) {
    refuse("device memory has no scans", "copy the vector to host memory");
  }
  if (call.timeout_ms != -1) {
    refuse("a call on device memory has no time limit of its own", "set DeviceOptions::timeout_ms");
  }
  if (detail::has_own_max_error(call)) {
    refuse("a call on device memory sends no data between hosts, so that nothing is encoded",
           "remove max_error");
  }
  if (reduces(call.collective) && !has_kernel(call.dtype, call.reduction.op)) {
    refuse("no device kernel supports " + std::string(to_string(call.reduction.op)) + " of " +
               std::string(to_string(call.dtype)),
           "see the table at ReduceOp");
  }
  // The other ranks do not know whether the root is in place, so its passes must allow both.
  if (call.collective == Collective::reduce && engine::is_in_place(call, me) &&
      !call.algorithm.empty() && call.algorithm != "flat" && call.algorithm != "reproducible") {
    refuse("on device memory only flat reduces in place", "use flat, or pass another `out`");
  }
  engine::Extent extent = extent_of(call, me, ranks);
  if (cut_of(call.collective) == VectorCut::pairs && extent.input != 0 && extent.output != 0 &&
      engine::is_in_place(call, me)) {
    refuse("on device memory all_to_all_v is not possible in place", "pass another `out`");
  }
  if (call.collective == Collective::broadcast) {
    // For the same reason, the other ranks cannot know another location of the root's data.
    if (extent.input != 0 && call.in != nullptr && call.in != call.out) {
      refuse("on device memory broadcast is always in place", "pass the root's data as `out`");
    }
    extent.input = 0;  // `out` is both input and output
  }
  engine::check_buffers(call, caller, extent);
}

engine::Extent extent_of(const Call& call, int me, int ranks) {
  const CollectiveTraits& traits = traits_of(call.collective);
  const auto n = static_cast<std::size_t>(ranks);
  const auto rank = static_cast<std::size_t>(me);
  const bool by_blocks = is_v_form(call.collective);
  const auto elements = [&](Holding holding, bool is_input) -> std::size_t {
    switch (holding) {
      case Holding::nothing:
        return 0;
      case Holding::part:
        return by_blocks ? call.counts[rank] : call.count;
      case Holding::pairs:
        if (!by_blocks) {
          return n * call.count;
        }
        return is_input ? end_of(call.counts, call.displs)
                        : end_of(call.recv_counts, call.recv_displs);
      case Holding::whole_at_root:
        if (me != call.root) {
          return 0;
        }
        break;
      case Holding::whole:
        break;
    }
    if (by_blocks) {
      return end_of(call.counts, call.displs);
    }
    return (cut_of(call.collective) == VectorCut::none ? 1 : n) * call.count;
  };
  const std::size_t size = size_of(call.dtype);
  return {.input = elements(traits.input, true) * size,
          .output = elements(traits.output, false) * size};
}

void put_blocks(const Call& call, int me, int ranks, Launch& launch) {
  const std::size_t size = size_of(call.dtype);
  const auto rank = static_cast<std::size_t>(me);
  const auto root = static_cast<std::size_t>(call.root);
  const auto block = [&](std::size_t index) {
    return Block{.offset = engine::offset_of(call.counts, call.displs, index) * size,
                 .bytes = call.counts[index] * size};
  };
  const Block own{.offset = 0, .bytes = call.counts[rank] * size};
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    switch (call.collective) {
      case Collective::all_to_all_v:
        launch.sent[r] = block(r);
        launch.received[r] = {
            .offset = engine::offset_of(call.recv_counts, call.recv_displs, r) * size,
            .bytes = call.recv_counts[r] * size};
        break;
      case Collective::reduce_scatter_v:
        launch.sent[r] = block(r);
        launch.received[r] = own;
        break;
      case Collective::all_gather_v:
        launch.sent[r] = own;
        launch.received[r] = block(r);
        break;
      case Collective::scatter_v:
        launch.sent[r] = rank == root ? block(r) : Block{};
        launch.received[r] = r == root ? own : Block{};
        break;
      default:  // gather_v
        launch.sent[r] = r == root ? own : Block{};
        launch.received[r] = rank == root ? block(r) : Block{};
        break;
    }
  }
}

}  // namespace unisono::device
