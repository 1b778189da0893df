#include "device/blocks.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "base/collectives.h"
#include "device/kernels.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

using Counts = std::span<const std::size_t>;

[[noreturn]] void refuse(const Call& call, const std::string& what) {
  throw Error(ErrorCode::usage, std::string(to_string(call.collective)) + ": " + what);
}

std::size_t offset_of(Counts counts, Counts displs, std::size_t index) {
  if (!displs.empty()) {
    return displs[index];
  }
  std::size_t sum = 0;
  for (std::size_t i = 0; i < index; ++i) {
    sum += counts[i];
  }
  return sum;
}

// Elements from a buffer's beginning to the end of its last block.
std::size_t end_of(Counts counts, Counts displs) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    end = std::max(end, counts[i] == 0 ? 0 : offset_of(counts, displs, i) + counts[i]);
  }
  return end;
}

void check_counts(const Call& call, Counts counts, Counts displs, std::size_t ranks,
                  const char* name) {
  if (counts.size() != ranks) {
    refuse(call, std::string(name) + " has " + std::to_string(counts.size()) + " entries for " +
                     std::to_string(ranks) + " ranks\ngive one for each rank");
  }
  if (!displs.empty() && displs.size() != ranks) {
    refuse(call, "displs of " + std::string(name) + " has " + std::to_string(displs.size()) +
                     " entries for " + std::to_string(ranks) + " ranks\ngive one for each rank");
  }
  const std::size_t most = std::numeric_limits<std::size_t>::max() / 2 / size_of(call.dtype);
  std::size_t packed = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t at = displs.empty() ? packed : displs[i];
    if (counts[i] > most || at > most - counts[i]) {
      refuse(call, std::string(name) + " has more elements than memory\nlook at its entry " +
                       std::to_string(i));
    }
    packed = at + counts[i];
  }
}

// Where its input lies where the call is in place: at `out`, or that much behind it; where `out`
// is a part of the input, before it.
bool is_in_place(const Call& call, std::size_t rank) {
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  if (cut_of(call.collective) != VectorCut::parts) {
    return in == out && cut_of(call.collective) == VectorCut::none;
  }
  const std::size_t part =
      size_of(call.dtype) *
      (is_v_form(call.collective) ? offset_of(call.counts, call.displs, rank) : call.count * rank);
  return traits_of(call.collective).input == Holding::part ? in == out + part : out == in + part;
}

void check_overlap(const Call& call, const Reach& reach, int me) {
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  if (reach.input == 0 || reach.output == 0 || call.in == nullptr || in >= out + reach.output ||
      out >= in + reach.input || is_in_place(call, static_cast<std::size_t>(me))) {
    return;
  }
  if (in == out && cut_of(call.collective) == VectorCut::pairs) {
    refuse(call, "on device memory nothing is exchanged in place\ngive another out");
  }
  refuse(call,
         "in and out overlap, and not in the one way that is in place\nuse disjoint buffers, or "
         "see the in-place rule of communicator.hpp");
}

}  // namespace

void check_call(const Call& call, int me, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= ranks)) {
    refuse(call, "root " + std::to_string(call.root) + " of " + std::to_string(ranks) + " ranks");
  }
  if (call.timeout_ms != -1) {
    refuse(call,
           "a call on device memory has no time limit of its own\nset DeviceOptions::timeout_ms");
  }
  if (detail::has_own_accuracy(call)) {
    refuse(call,
           "a call on device memory sends nothing between hosts that could be encoded\nleave the "
           "accuracy out");
  }
  if (reduces(call.collective) && !has_kernel(call.dtype, call.reduction.op)) {
    refuse(call, "no kernel of device memory does " + std::string(to_string(call.reduction.op)) +
                     " of " + std::string(to_string(call.dtype)) + "\nsee the table of ReduceOp");
  }
  // The other ranks do not know whether the root is in place, so its passes must not mind.
  if (call.collective == Collective::reduce && me == call.root && call.in == call.out &&
      call.in != nullptr && !call.algorithm.empty() && call.algorithm != "flat" &&
      call.algorithm != "reproducible") {
    refuse(call, "on device memory only flat reduces in place\nuse flat, or give another out");
  }
  if (is_v_form(call.collective)) {
    check_counts(call, call.counts, call.displs, n, "counts");
    if (call.collective == Collective::all_to_all_v) {
      check_counts(call, call.recv_counts, call.recv_displs, n, "recv_counts");
    }
  } else if (call.count > std::numeric_limits<std::size_t>::max() / 2 / size_of(call.dtype) / n) {
    refuse(call, "count " + std::to_string(call.count) + " is more than memory can hold");
  }
  const Reach reach = reach_of(call, me, ranks);
  const bool has_input =
      call.in != nullptr || (call.out != nullptr && cut_of(call.collective) == VectorCut::none);
  if ((reach.input != 0 && !has_input) || (reach.output != 0 && call.out == nullptr)) {
    refuse(call, std::string(reach.output != 0 && call.out == nullptr ? "out" : "in") +
                     " is null\ngive the device memory that the call uses");
  }
  check_overlap(call, reach, me);
}

Reach reach_of(const Call& call, int me, int ranks) {
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
    return Block{.offset = offset_of(call.counts, call.displs, index) * size,
                 .bytes = call.counts[index] * size};
  };
  const Block own{.offset = 0, .bytes = call.counts[rank] * size};
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
    switch (call.collective) {
      case Collective::all_to_all_v:
        launch.sent[r] = block(r);
        launch.received[r] = {.offset = offset_of(call.recv_counts, call.recv_displs, r) * size,
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
