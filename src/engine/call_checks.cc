#include "engine/call_checks.h"

#include <cstdint>
#include <span>

#include "base/collectives.h"
#include "base/dtypes.h"
#include "base/private.h"
#include "base/rank_list.h"

namespace unisono::engine {
namespace {

struct List {
  const char* name;
  std::span<const std::size_t> entries;
  bool required;
};

// Returns true if the entries add up to more than `most`; the sum cannot wrap.
bool is_more_than(std::size_t most, std::span<const std::size_t> entries) {
  std::size_t sum = 0;
  for (const std::size_t entry : entries) {
    if (entry > most - sum) {
      return true;
    }
    sum += entry;
  }
  return false;
}

const std::byte* at(const void* base, std::size_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}

void check_root(const Call& call, Caller caller) {
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= caller.ranks)) {
    refuse(call, caller, "root " + std::to_string(call.root) + " is not a rank",
           "ranks are 0 to " + std::to_string(caller.ranks - 1));
  }
}

void check_numbers(const Call& call, Caller caller, std::size_t element) {
  if (call.collective == Collective::all_to_all_v) {
    const auto me = static_cast<std::size_t>(caller.rank);
    if (call.counts[me] != call.recv_counts[me]) {
      refuse(call, caller,
             "it sends " + std::to_string(call.counts[me]) + " elements to itself, but receives " +
                 std::to_string(call.recv_counts[me]),
             "make the rank's own entries of counts and recv_counts equal");
    }
  }
  const auto n = static_cast<std::size_t>(caller.ranks);
  const std::size_t most = kMostBytes / element / (n * n);
  if (call.count > most || is_more_than(most, call.counts) || is_more_than(most * n, call.displs) ||
      is_more_than(most, call.recv_counts) || is_more_than(most * n, call.recv_displs)) {
    refuse(call, caller, "more elements than memory can hold",
           "check the counts for negative numbers");
  }
}

}  // namespace

UNISONO_PRIVATE void refuse(const Call& call, Caller caller, const std::string& what,
                            const std::string& hint) {
  const std::string name(to_string(call.collective));
  throw Error(
      ErrorCode::usage,
      name + " on " + member_text(caller.rank, caller.world_rank) + ": " + what + "\n" + hint,
      {.rank = caller.world_rank, .peer = -1, .collective = name});
}

void check_words(const Call& call) {
  if (static_cast<int>(call.collective) >= kCollectiveCount ||
      static_cast<int>(call.dtype) >= kDtypeCount) {
    throw Error(ErrorCode::usage, "not a collective or dtype of unisono\nuse the enumerators");
  }
}

void check_lists(const Call& call, Caller caller) {
  if (!is_v_form(call.collective)) {
    if (!(call.counts.empty() && call.displs.empty() && call.recv_counts.empty() &&
          call.recv_displs.empty())) {
      refuse(call, caller,
             "this collective has one count for all ranks, but lists of counts or displs are given",
             "remove the lists, or call the v-form");
    }
    return;
  }
  const bool pairs = cut_of(call.collective) == VectorCut::pairs;
  for (const List& list : {List{"counts", call.counts, true}, List{"displs", call.displs, false},
                           List{"recv_counts", call.recv_counts, pairs},
                           List{"recv_displs", call.recv_displs, false}}) {
    if (list.entries.size() != static_cast<std::size_t>(caller.ranks) &&
        (list.required || !list.entries.empty())) {
      refuse(call, caller,
             std::string(list.name) + " has " + std::to_string(list.entries.size()) +
                 (list.entries.size() == 1 ? " entry" : " entries") + " for " +
                 std::to_string(caller.ranks) + " ranks",
             "give one for each rank");
    }
  }
}

UNISONO_PRIVATE void check_shape(const Call& call, Caller caller, std::size_t element) {
  check_words(call);
  check_root(call, caller);
  check_lists(call, caller);
  check_numbers(call, caller, element);
}

UNISONO_PRIVATE void check_buffers(const Call& call, Caller caller, const Extent& extent) {
  if (extent.input != 0 && call.in == nullptr) {
    refuse(call, caller,
           "`in` is null, but " + std::to_string(extent.input) + " bytes are read from it",
           "pass the buffer, or a count of 0");
  }
  if (extent.output != 0 && call.out == nullptr) {
    refuse(call, caller,
           "`out` is null, but " + std::to_string(extent.output) + " bytes are written to it",
           "pass the buffer, or a count of 0");
  }
  if (extent.input == 0 || extent.output == 0) {
    return;
  }
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  if (in < out + extent.output && out < in + extent.input && !is_in_place(call, caller.rank)) {
    refuse(call, caller, "`in` and `out` overlap, but not as the in-place rule allows",
           "use disjoint buffers; unisono/rules.h has the in-place rule");
  }
}

void check_size(std::size_t bytes, const std::string& call, const ErrorContext& context) {
  if (bytes > kMostBytes) {
    throw Error(ErrorCode::usage,
                call + ": " + std::to_string(bytes) +
                    " bytes are more than memory can hold\nthe size was computed as " +
                    std::to_string(static_cast<std::int64_t>(bytes)) + ": check it",
                context);
  }
}

UNISONO_PRIVATE bool is_in_place(const Call& call, int rank) {
  if (call.in == nullptr || call.out == nullptr ||
      (is_rooted(call.collective) && rank != call.root)) {
    return false;
  }
  if (cut_of(call.collective) != VectorCut::parts) {
    return call.in == call.out && moves_data(call.collective);
  }
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t part =
      size_of(call.dtype) *
      (call.counts.empty() ? call.count * r : offset_of(call.counts, call.displs, r));
  return traits_of(call.collective).input == Holding::part ? call.in == at(call.out, part)
                                                           : call.out == at(call.in, part);
}

}  // namespace unisono::engine
