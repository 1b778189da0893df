#include "select/planner.h"

#include <bit>
#include <numeric>
#include <utility>

#include "base/collectives.h"
#include "base/hash.h"
#include "engine/call_checks.h"
#include "schedule/rank_order.h"
#include "select/choice.h"
#include "select/programs.h"
#include "select/user_schedule.h"

namespace unisono::comm {
namespace {

bool is_v(const Call& call) {
  return is_v_form(call.collective);
}

engine::Sizes sizes_of(const Call& call) {
  const bool barrier = call.collective == Collective::barrier;  // a barrier's element has one byte
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
          .max_error = call.max_error,
          .user = call.reduction.user.combine,
          .user_context = call.reduction.user.context,
          .algorithm = call.algorithm};
}

std::size_t whole_lines(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

Planner::Planner(Programs& programs, const Profile& profile, engine::Caller caller,
                 std::uint64_t group_id, std::string_view forced, double max_error, bool multicast,
                 AcrossHosts hosts)
    : programs_(programs),
      profile_(profile),
      caller_(caller),
      group_id_(group_id),
      multicast_(multicast),
      max_error_(max_error),
      hosts_(std::move(hosts)),
      forced_(parse_forced(forced)) {}

void Planner::refuse(const Call& call, const std::string& what, const std::string& hint) const {
  engine::refuse(call, caller_, what, hint);
}

void Planner::check_shape(const Call& call) const {
  engine::check_words(call);
  check_max_error(call);
  engine::check_shape(call, caller_, moved_size(call));
  if (reduces(call.collective)) {
    const ReduceOp op = call.reduction.op;
    if (op == ReduceOp::user && call.reduction.user.combine == nullptr) {
      refuse(call, "the user-defined operation has no function",
             "set `combine` to the function that combines two vectors");
    }
    if (op == ReduceOp::avg && is_scan(call.collective)) {
      refuse(call, "scans do not support avg",
             "use sum, and divide rank r's result by its number of ranks");
    }
    if (static_cast<int>(op) >= kReduceOpCount ||
        (op != ReduceOp::user && kernels::find_reduce(call.dtype, op) == nullptr) ||
        (op == ReduceOp::premul_sum && kernels::find_multiply(call.dtype) == nullptr) ||
        (op == ReduceOp::avg && kernels::find_divide(call.dtype) == nullptr)) {
      refuse(call,
             std::string(to_string(op)) + " of " + std::string(to_string(call.dtype)) +
                 " is not defined",
             "`unisono list --dtypes` lists the defined pairs");
    }
  }
}

Prepared Planner::prepare(const Call& call, bool in_place) {
  const Choice choice = choose(call);
  const int root = choice.shape.root;
  const auto found = choice.encoded != nullptr
                         ? programs_.find(*choice.encoded->schedule,
                                          encoded_key(*choice.encoded, root, hosts_.hosts()),
                                          caller_.rank, multicast_)
                     : choice.user != nullptr
                         ? programs_.find(choice.user->schedule,
                                          choice.name + "#" + std::to_string(choice.user->content),
                                          caller_.rank, multicast_)
                         : programs_.find(*choice.algorithm, choice.shape, choice.name,
                                          call.collective, caller_.rank, multicast_);
  const Compiled& compiled = *found;
  const engine::Sizes sizes = sizes_of(call);
  const auto places = engine::lay_out(compiled.schedule, caller_.rank, sizes);

  Prepared prepared{
      .collective = call.collective,
      .dtype = call.dtype,
      .op = call.reduction.op,
      .root = root,
      .count = is_v(call) ? std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0})
                          : call.count,
      .algorithm = choice.name,
      .encoded = choice.encoded != nullptr};
  prepared.around =
      engine::around(call.collective, call.dtype, call.reduction.op, caller_.rank, caller_.ranks);
  prepared.factor =
      call.reduction.op == ReduceOp::premul_sum ? call.reduction.factor : prepared.around.scale;
  prepared.moved = engine::extent_of(compiled.schedule, caller_.rank, places);
  const std::size_t widening = size_of(prepared.around.moved) / size_of(call.dtype);
  prepared.extent = {.input = prepared.moved.input / widening,
                     .output = prepared.moved.output / widening};
  if (engine::fills_output(call.collective, call.reduction.op, caller_.rank)) {
    prepared.extent.output = prepared.extent.input;
  }
  prepared.stage_input =
      prepared.around.before != nullptr || (in_place && compiled.in_place == nullptr);
  prepared.runs_in_place = in_place && !prepared.stage_input;
  prepared.program =
      engine::bind(prepared.runs_in_place ? *compiled.in_place : compiled.out_of_place, places,
                   sizes.element, prepared.moved, call.collective == Collective::all_to_all_v);
  if (call.collective == Collective::barrier) {
    prepared.extent = prepared.moved = {};  // a barrier uses the communicator's own byte
  }
  prepared.reducer = engine::reducer_of(call.collective, call.reduction.op, prepared.around);
  if (call.reduction.op == ReduceOp::user) {
    prepared.reducer.user = call.reduction.user.combine;
    prepared.reducer.context = call.reduction.user.context;
    // A scan's function need not commute, and takes the lower ranks' elements as `in`.
    prepared.reducer.reversed = is_scan(call.collective) && sums_in_rank_order(compiled.schedule);
  }

  const bool reducing = reduces(call.collective);
  Hash hash;
  hash.add(group_id_).add(static_cast<std::uint64_t>(call.collective));
  hash.add(static_cast<std::uint64_t>(call.dtype)).add(static_cast<std::uint64_t>(root));
  hash.add(reducing ? static_cast<std::uint64_t>(call.reduction.op) : 0).add(call.count);
  if (reducing && call.reduction.op == ReduceOp::premul_sum) {
    hash.add(std::bit_cast<std::uint64_t>(call.reduction.factor));
  }
  hash.add(static_cast<std::uint64_t>(caller_.ranks)).add(std::string_view(prepared.algorithm));
  if (choice.user != nullptr) {
    hash.add(choice.user->content);
  }
  if (call.collective != Collective::all_to_all_v) {  // only this rank knows its counts
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
  engine::check_words(call);
  engine::check_lists(call, caller_);  // must come first: the code below reads the lists
  const bool in_place = engine::is_in_place(call, caller_.rank);
  if (is_v(call)) {
    check_shape(call);
    latest_v_ = std::make_shared<const Prepared>(prepare(call, in_place));
    engine::check_buffers(call, caller_, latest_v_->extent);
    return latest_v_;
  }
  const PlanKey key = key_of(call, in_place);
  if (const RecentPlans::Entry* const found = recent_.find(key)) {
    engine::check_buffers(call, caller_, found->plan->extent);
    return recent_.set_latest(call, *found);
  }
  check_shape(call);
  auto prepared = std::make_shared<const Prepared>(prepare(call, in_place));
  engine::check_buffers(call, caller_, prepared->extent);
  return recent_.set_latest(call, recent_.add(key, std::move(prepared)));
}

}  // namespace unisono::comm
