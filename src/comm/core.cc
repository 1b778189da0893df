#include "comm/core.h"

#include <algorithm>
#include <utility>

#include "base/block_allocator.h"
#include "comm/call_queue.h"
#include "comm/group.h"
#include "comm/helpers.h"
#include "comm/operations.h"
#include "comm/waiter.h"
#include "diagnose/remote_records.h"
#include "engine/call_checks.h"
#include "select/planner.h"

namespace unisono::detail {

using comm::Fabric;

namespace {

// Copies the counts and offsets of a v-form: the caller of run_async() owns them, and may free them
// before the operation begins.
void own_lists(PostedCollective& posted) {
  Call& call = posted.call;
  const std::span<const std::size_t>* spans[] = {&call.counts, &call.displs, &call.recv_counts,
                                                 &call.recv_displs};
  std::size_t size = 0;
  for (const auto* span : spans) {
    size += span->size();
  }
  posted.lists.reserve(size);
  for (auto* span : {&call.counts, &call.displs, &call.recv_counts, &call.recv_displs}) {
    const std::size_t begin = posted.lists.size();
    posted.lists.insert(posted.lists.end(), span->begin(), span->end());
    *span = {posted.lists.data() + begin, span->size()};
  }
  call.algorithm = {};  // already in the plan
}

}  // namespace

std::string_view PlanState::algorithm() const {
  return prepared->algorithm;
}

Core::Core(std::shared_ptr<comm::World> world, std::shared_ptr<shm::Mapping> segment,
           std::vector<int> members, int rank, std::uint64_t id)
    : group_(std::make_unique<comm::Group>(std::move(world), std::move(segment), std::move(members),
                                           rank, id)),
      operations_(std::make_unique<comm::Operations>(*group_)),
      planner_(std::make_unique<comm::Planner>(
          group_->world().programs(), *group_->world().setup().profile,
          engine::Caller{
              .rank = rank, .ranks = group_->size(), .world_rank = group_->world().rank()},
          id, group_->world().options().algorithm, group_->world().options().max_error,
          operations_->multicasts(),
          comm::AcrossHosts(group_->world().hosts(), group_->members()))),
      queue_(std::make_unique<comm::CallQueue>(*group_, *operations_)) {
  if (comm::RemoteRecords* const remote = group_->world().remote_records()) {
    remote->join(id, group_->records().mine());
  }
}

void Core::take_helpers(std::vector<std::function<void(const Call& slice)>> helpers) {
  comm::World& world = group_->world();
  helpers_ = std::make_unique<comm::Helpers>(world.wait_environment(), *world.helpers(),
                                             std::move(helpers), rank(), size());
}

Core::~Core() {
  comm::RemoteRecords* const remote = group_->world().remote_records();
  if (remote != nullptr && group_->world().same_process()) {
    remote->forget(group_->id());
  }
}

int Core::rank() const noexcept {
  return group_->rank();
}

int Core::size() const noexcept {
  return group_->size();
}

const std::shared_ptr<comm::World>& Core::world() const noexcept {
  return group_->shared_world();
}

void Core::check_blocking() const {
  const comm::World& world = group_->world();
  if (!world.same_process() || world.membership().abort().is_set() || together_) {
    refuse_blocking();
  }
}

void Core::refuse_blocking() const {
  group_->world().check_usable();
  throw Error(
      ErrorCode::usage,
      "a blocking call inside group()\nuse the async form there: group() waits for all of them",
      {.rank = group_->world().rank()});
}

void Core::run(const Call& call) {
  check_blocking();
  if (helpers_ == nullptr || !run_in_slices(call)) {
    run_here(call, nullptr);
  }
}

// `counted` is the whole call if this is a slice of it; nullptr if this is the whole call.
void Core::run_here(const Call& call, const std::shared_ptr<const comm::Prepared>* counted) {
  if (const comm::CallQueue::Alone alone(*queue_, Fabric::Use::collectives); alone) {
    const comm::Prepared& prepared = *planner_->find(call);
    operations_->run(prepared, call, counted == nullptr ? prepared : **counted,
                     queue_->effective_timeout(call.timeout_ms));
    return;
  }
  queue_->wait(*post_async(call, 0, counted == nullptr ? nullptr : *counted), call.timeout_ms);
}

bool Core::run_in_slices(const Call& call) {
  const int useful = helpers_->slices_of(call);
  const int slices = useful == 1 ? 1 : planner_->most_threads(call, useful);
  if (slices == 1) {
    return false;
  }
  std::shared_ptr<const comm::Prepared> whole;
  {
    const comm::CallQueue::Planning planning(*queue_);
    whole = planner_->find(call);  // also validates the call
    if (planner_->is_named(call) || !comm::Helpers::may_cut(call, *whole)) {
      return false;
    }
  }
  const auto first = [&](const Call& slice) { run_here(slice, &whole); };
  if (!helpers_->run(call, *whole, slices, first)) {
    queue_->refuse_second_thread();
  }
  return true;
}

void Core::start(const PlanState& plan) {
  check_blocking();
  if (const comm::CallQueue::Alone alone(*queue_, Fabric::Use::collectives); alone) {
    operations_->run(*plan.prepared, plan.call, *plan.prepared,
                     queue_->effective_timeout(plan.call.timeout_ms));
    return;
  }
  queue_->wait(*start_async(plan), plan.call.timeout_ms);
}

std::unique_ptr<PlanState> Core::plan(const Call& call) {
  group_->world().check_usable();
  const comm::CallQueue::Planning planning(*queue_);
  auto plan = std::make_unique<PlanState>();
  plan->core = shared_from_this();
  plan->prepared = planner_->find(call);
  plan->call = call;
  // The plan has copied the parts of the lists that it needs; the lists belong to the caller.
  plan->call.counts = plan->call.displs = {};
  plan->call.recv_counts = plan->call.recv_displs = {};
  plan->call.algorithm = {};
  return plan;
}

Explanation Core::explain(const Call& call) {
  group_->world().check_usable();
  const comm::CallQueue::Planning planning(*queue_);
  return planner_->explain(call);
}

std::shared_ptr<RequestState> Core::run_async(const Call& call, std::uint64_t salt) {
  return post_async(call, salt, nullptr);
}

std::shared_ptr<RequestState> Core::post_async(
    const Call& call, std::uint64_t salt, const std::shared_ptr<const comm::Prepared>& counted) {
  group_->world().check_usable();
  PostedCollective posted{.prepared = {}, .counted = counted, .call = call, .salt = salt};
  {
    const comm::CallQueue::Planning planning(*queue_);
    posted.prepared = planner_->find(call);
  }
  return post(std::move(posted));
}

std::shared_ptr<RequestState> Core::start_async(const PlanState& plan) {
  group_->world().check_usable();
  return post({.prepared = plan.prepared, .counted = {}, .call = plan.call});
}

std::shared_ptr<RequestState> Core::transfer_async(comm::PendingTransfer transfer, int timeout_ms) {
  group_->world().check_usable();
  check_transfer(transfer);
  if (transfer.send && !together_ && queue_->send_now(transfer)) {
    return finished_send(false);
  }
  auto request = new_request();
  request->transfer = transfer;
  request->timeout_ms = timeout_ms;
  return post(std::move(request));
}

void Core::transfer(std::span<comm::PendingTransfer> transfers, int timeout_ms) {
  check_blocking();
  for (const comm::PendingTransfer& transfer : transfers) {
    check_transfer(transfer);
  }
  if (const comm::CallQueue::Alone alone(*queue_, Fabric::Use::transfers); alone) {
    operations_->run(transfers, queue_->effective_timeout(timeout_ms));
    return;
  }
  std::vector<std::shared_ptr<RequestState>> requests;
  for (const comm::PendingTransfer& transfer : transfers) {
    requests.push_back(transfer_async(transfer, timeout_ms));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->driver->wait(*requests[i], timeout_ms);
    if (!transfers[i].send) {
      transfers[i].peer = requests[i]->transfer.peer;
      transfers[i].bytes = requests[i]->transfer.bytes;
    }
  }
}

std::shared_ptr<RequestState> Core::new_request() {
  auto request = std::allocate_shared<RequestState>(BlockAllocator<RequestState>());
  request->core = shared_from_this();
  return request;
}

std::shared_ptr<RequestState> Core::post(PostedCollective posted) {
  own_lists(posted);
  auto request = new_request();
  request->timeout_ms = posted.call.timeout_ms;
  request->collective = std::make_unique<PostedCollective>(std::move(posted));
  return post(std::move(request));
}

std::shared_ptr<RequestState> Core::post(std::shared_ptr<RequestState> request) {
  if (together_) {
    request->driver = queue_.get();
    request->waited = true;  // run_together() posts it and waits for it
    collected_.push_back(request);
  } else {
    queue_->post(*request);
  }
  return request;
}

Statistics Core::statistics() const {
  return operations_->statistics();
}

void Core::check_transfer(const comm::PendingTransfer& transfer) const {
  const bool is_rank = transfer.peer >= 0 && transfer.peer < size();
  const bool any = !transfer.send && transfer.peer == kAnySource;
  const bool has_buffer = transfer.bytes == 0 || transfer.data != nullptr;
  if ((!is_rank && !any) || !has_buffer || transfer.bytes > engine::kMostBytes) {
    refuse_transfer(transfer, is_rank || any);
  }
}

void Core::refuse_transfer(const comm::PendingTransfer& transfer, bool has_peer) const {
  const std::string verb = transfer.send ? "send" : "recv";
  const std::string call = verb + " on " + group_->name(rank());
  const ErrorContext place{
      .rank = group_->world().rank(),
      .peer = has_peer && transfer.peer != kAnySource ? group_->world_rank(transfer.peer) : -1,
      .collective = verb};
  if (!has_peer) {
    throw Error(ErrorCode::usage,
                call + ": " + std::to_string(transfer.peer) + " is not a rank\nranks are 0 to " +
                    std::to_string(size() - 1),
                place);
  }
  engine::check_size(transfer.bytes, call, place);
  throw Error(ErrorCode::usage,
              call + ": the buffer is null, but " + std::to_string(transfer.bytes) +
                  " bytes are given\npass the buffer",
              place);
}

void Core::abort(std::string_view reason) {
  comm::World& world = group_->world();
  std::string text = "rank " + std::to_string(world.rank()) + " called abort()";
  if (!reason.empty()) {
    text += ": " + std::string(reason);
  }
  world.membership().abort().raise(ErrorCode::aborted, world.rank(), text);
}

std::optional<Error> Core::failure() {
  group_->world().check_process();
  return group_->world().membership().failure();
}

std::vector<int> Core::late_ranks() const {
  group_->world().check_process();
  return group_->records().late();
}

}  // namespace unisono::detail
