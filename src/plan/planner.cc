#include "plan/planner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/collectives.h"
#include "base/hash.h"
#include "plan/choice.h"
#include "plan/programs.h"
#include "plan/user_schedule.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

// Beyond this, bytes cannot be counted safely (and no machine has them).
constexpr std::size_t kMostBytes = std::size_t{1} << 56;

// What follows asks tables about both.
void check_words(const Call& call) {
  if (static_cast<int>(call.collective) >= kCollectiveCount ||
      static_cast<int>(call.dtype) >= kDtypeCount) {
    throw Error(ErrorCode::usage, "not a collective or dtype of unisono\nuse the enumerations");
  }
}

bool is_v(const Call& call) {
  return is_v_form(call.collective);
}

const std::byte* at(const void* base, std::size_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}

// The element offset of a rank's part in the whole vector.
std::size_t part_offset(const Call& call, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  if (call.counts.empty()) {
    return call.count * r;
  }
  if (!call.displs.empty()) {
    return call.displs[r];
  }
  std::size_t offset = 0;
  for (std::size_t i = 0; i < r; ++i) {
    offset += call.counts[i];
  }
  return offset;
}

engine::Sizes sizes_of(const Call& call) {
  const bool barrier = call.collective == Collective::barrier;  // one byte, whatever the call says
  return {.element = barrier ? 1 : moved_size(call),
          .count = barrier ? 1 : call.count,
          .counts = call.counts,
          .displs = call.displs,
          .recv_counts = call.recv_counts,
          .recv_displs = call.recv_displs};
}

PlanKey key_of(const Call& call, bool in_place) {
  return {.collective = call.collective,
          .dtype = call.dtype,
          .op = call.reduction.op,
          .in_place = in_place,
          .root = call.root,
          .count = call.count,
          .factor = call.reduction.factor,
          .accuracy = call.accuracy,
          .user = call.reduction.user.combine,
          .user_context = call.reduction.user.context,
          .algorithm = call.algorithm};
}

std::size_t whole_lines(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

std::size_t total(std::span<const std::size_t> counts) {
  std::size_t sum = 0;
  for (const std::size_t count : counts) {
    sum += std::min(count, kMostBytes);  // a sum that is too large is refused, never wrapped
  }
  return sum;
}

}  // namespace

Planner::Planner(Programs& programs, const Profile& profile, int rank, int ranks,
                 std::uint64_t group_id, std::string_view forced, double accuracy, bool multicast,
                 AcrossHosts hosts)
    : programs_(programs),
      profile_(profile),
      rank_(rank),
      ranks_(ranks),
      group_id_(group_id),
      multicast_(multicast),
      accuracy_(accuracy),
      hosts_(std::move(hosts)),
      forced_(parse_forced(forced)) {}

void Planner::refuse(const Call& call, const std::string& what, const std::string& hint) const {
  throw Error(ErrorCode::usage,
              std::string(to_string(call.collective)) + " on rank " + std::to_string(rank_) + ": " +
                  what + "\n" + hint,
              {.rank = rank_, .peer = -1, .collective = std::string(to_string(call.collective))});
}

bool Planner::is_in_place(const Call& call) const {
  if (call.in == nullptr || call.out == nullptr) {
    return false;
  }
  const CollectiveTraits& traits = traits_of(call.collective);
  if (is_rooted(call.collective) && rank_ != call.root) {
    return false;
  }
  const std::size_t part = part_offset(call, rank_) * size_of(call.dtype);
  if (cut_of(call.collective) != VectorCut::parts) {
    return call.in == call.out && moves_data(call.collective);
  }
  return traits.input == Holding::part ? call.in == at(call.out, part)
                                       : call.out == at(call.in, part);
}

void Planner::check_shape(const Call& call) const {
  check_words(call);
  check_accuracy(call);
  const auto n = static_cast<std::size_t>(ranks_);
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= ranks_)) {
    refuse(call, "root " + std::to_string(call.root) + " is not a rank",
           "ranks are 0 to " + std::to_string(ranks_ - 1));
  }
  if (is_v(call)) {
    const bool pairs = cut_of(call.collective) == VectorCut::pairs;
    const auto wrong = [&](std::span<const std::size_t> list, bool required) {
      return list.size() != n && (required || !list.empty());
    };
    if (wrong(call.counts, true) || wrong(call.displs, false) || wrong(call.recv_counts, pairs) ||
        wrong(call.recv_displs, false)) {
      refuse(call,
             "counts and displs must have one entry for each of the " + std::to_string(ranks_) +
                 " ranks",
             "check the lengths of the lists");
    }
  }
  if (call.collective == Collective::all_to_all_v) {
    const auto me = static_cast<std::size_t>(rank_);
    if (call.counts[me] != call.recv_counts[me]) {
      refuse(call,
             "it sends " + std::to_string(call.counts[me]) + " elements to itself, but receives " +
                 std::to_string(call.recv_counts[me]),
             "counts and recv_counts must agree for the rank itself");
    }
  }
  const std::size_t most = kMostBytes / moved_size(call) / (n * n);
  if (call.count > most || total(call.counts) > most || total(call.displs) > most * n ||
      total(call.recv_counts) > most || total(call.recv_displs) > most * n) {
    refuse(call, "more elements than memory can hold", "check the counts for negative numbers");
  }
  if (reduces(call.collective)) {
    const ReduceOp op = call.reduction.op;
    if (op == ReduceOp::user && call.reduction.user.combine == nullptr) {
      refuse(call, "the user-defined operation has no function",
             "set `combine` to the function that combines two vectors");
    }
    if (static_cast<int>(op) >= kReduceOpCount ||
        (op != ReduceOp::user && kernels::find_reduce(call.dtype, op) == nullptr) ||
        (op == ReduceOp::premul_sum && kernels::find_multiply(call.dtype) == nullptr) ||
        (op == ReduceOp::avg && kernels::find_divide(call.dtype) == nullptr)) {
      refuse(call,
             std::string(to_string(op)) + " of " + std::string(to_string(call.dtype)) +
                 " is not defined",
             "see `unisono list --dtypes` for the pairs that are");
    }
  }
}

void Planner::check_buffers(const Call& call, const Prepared& prepared, bool in_place) const {
  const engine::Extent extent = prepared.extent;
  if (extent.input != 0 && call.in == nullptr) {
    refuse(call, "`in` is null, but " + std::to_string(extent.input) + " bytes are read from it",
           "pass the buffer, or the count 0");
  }
  if (extent.output != 0 && call.out == nullptr) {
    refuse(call, "`out` is null, but " + std::to_string(extent.output) + " bytes are written to it",
           "pass the buffer, or the count 0");
  }
  if (in_place || extent.input == 0 || extent.output == 0) {
    return;
  }
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  if (in < out + extent.output && out < in + extent.input) {
    refuse(call, "`in` and `out` overlap, and not in the one way that is in place",
           "use disjoint buffers; the headers (communicator.hpp, unisono.h) begin with the "
           "in-place rule");
  }
}

Prepared Planner::prepare(const Call& call, bool in_place) {
  const Choice choice = choose(call);
  const int root = choice.shape.root;
  const auto found =
      choice.encoded != nullptr
          ? programs_.find(*choice.encoded->schedule,
                           encoded_key(*choice.encoded, root, hosts_.hosts()), rank_, multicast_)
      : choice.user != nullptr
          ? programs_.find(choice.user->schedule,
                           choice.name + "#" + std::to_string(choice.user->content), rank_,
                           multicast_)
          : programs_.find(*choice.algorithm, choice.shape, choice.name, call.collective, rank_,
                           multicast_);
  const Compiled& compiled = *found;
  const engine::Sizes sizes = sizes_of(call);
  const auto places = engine::lay_out(compiled.schedule, rank_, sizes);

  Prepared prepared{.collective = call.collective,
                    .dtype = call.dtype,
                    .op = call.reduction.op,
                    .root = root,
                    .count = is_v(call) ? total(call.counts) : call.count,
                    .algorithm = choice.name,
                    .encoded = choice.encoded != nullptr};
  prepared.around = engine::around(call.collective, call.dtype, call.reduction.op, ranks_);
  prepared.factor = call.reduction.factor;
  prepared.moved = engine::extent_of(compiled.schedule, rank_, places);
  const std::size_t widening = size_of(prepared.around.moved) / size_of(call.dtype);
  prepared.extent = {.input = prepared.moved.input / widening,
                     .output = prepared.moved.output / widening};
  const bool reducing = reduces(call.collective);
  prepared.stage_input =
      prepared.around.before != nullptr || (in_place && compiled.in_place == nullptr);
  prepared.runs_in_place = in_place && !prepared.stage_input;
  prepared.program =
      engine::bind(prepared.runs_in_place ? *compiled.in_place : compiled.out_of_place, places,
                   sizes.element, prepared.moved, call.collective == Collective::all_to_all_v);
  if (call.collective == Collective::barrier) {
    prepared.extent = prepared.moved = {};  // its one byte is the communicator's own
    prepared.reducer.kernel = kernels::find_reduce(Dtype::u8, ReduceOp::bor);
  } else if (call.reduction.op == ReduceOp::user) {
    prepared.reducer.user = call.reduction.user.combine;
    prepared.reducer.context = call.reduction.user.context;
  } else if (reducing) {
    prepared.reducer.kernel = kernels::find_reduce(prepared.around.moved, call.reduction.op);
  }

  Hash hash;
  hash.add(group_id_).add(static_cast<std::uint64_t>(call.collective));
  hash.add(static_cast<std::uint64_t>(call.dtype)).add(static_cast<std::uint64_t>(root));
  hash.add(reducing ? static_cast<std::uint64_t>(call.reduction.op) : 0).add(call.count);
  hash.add(static_cast<std::uint64_t>(ranks_)).add(std::string_view(prepared.algorithm));
  if (choice.user != nullptr) {
    hash.add(choice.user->content);
  }
  if (call.collective != Collective::all_to_all_v) {  // whose counts belong to this rank alone
    for (const std::size_t count : call.counts) {
      hash.add(count);
    }
  }
  prepared.signature = hash.value();

  prepared.staged_input = whole_lines(prepared.program.scratch_bytes);
  prepared.staged_output =
      prepared.staged_input + whole_lines(prepared.stage_input ? prepared.moved.input : 0);
  prepared.workspace_bytes =
      prepared.staged_output + (prepared.narrows() ? prepared.moved.output : 0);
  OperationRecord record{.count = prepared.count,
                         .root = root,
                         .collective = call.collective,
                         .dtype = call.dtype,
                         .op = call.reduction.op};
  set_algorithm(record, prepared.algorithm);
  prepared.record = pack(record);
  return prepared;
}

const std::shared_ptr<const Prepared>& Planner::look_up(const Call& call) {
  check_words(call);
  if (is_v(call)) {
    check_shape(call);  // first: what follows reads the lists
    const bool in_place = is_in_place(call);
    latest_v_ = std::make_shared<const Prepared>(prepare(call, in_place));
    check_buffers(call, *latest_v_, in_place);
    return latest_v_;
  }
  if (!(call.counts.empty() && call.displs.empty() && call.recv_counts.empty() &&
        call.recv_displs.empty())) {
    refuse(call, "it has one count for all ranks, but lists of counts or displs are given",
           "leave the lists out, or call the v-form");
  }
  const bool in_place = is_in_place(call);
  const PlanKey key = key_of(call, in_place);
  if (const RecentPlans::Entry* const found = recent_.find(key)) {
    check_buffers(call, *found->plan, in_place);
    return recent_.set_latest(call, *found);
  }
  check_shape(call);
  auto prepared = std::make_shared<const Prepared>(prepare(call, in_place));
  check_buffers(call, *prepared, in_place);
  return recent_.set_latest(call, recent_.add(key, std::move(prepared)));
}

}  // namespace unisono::comm
