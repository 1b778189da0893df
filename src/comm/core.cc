// The calls: collectives blocking, persistent and asynchronous.
#include "comm/core.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "base/hash.h"

namespace unisono::detail {

using comm::Lanes;
using comm::Polled;
using comm::Prepared;
using comm::Waiter;
using engine::Progress;

namespace {

std::vector<comm::FlightRecorder*> boards_of(const comm::Hosts& hosts, std::span<const int> members,
                                             std::byte* memory) {
  const auto here = static_cast<int>(hosts.local_of(members).size());
  auto* next = reinterpret_cast<comm::FlightRecorder*>(memory + comm::GroupLayout(here).recorders);
  std::vector<comm::FlightRecorder*> recorders;
  for (const int member : members) {
    recorders.push_back(hosts.is_here(member) ? next++ : nullptr);
  }
  return recorders;
}

}  // namespace

std::shared_ptr<Core> Core::of_world(std::shared_ptr<comm::World> world) {
  std::vector<int> members;
  for (int rank = 0; rank < world->size(); ++rank) {
    members.push_back(rank);
  }
  std::byte* memory = world->first_group();
  const int rank = world->rank();
  return std::make_shared<Core>(std::move(world), nullptr, memory, std::move(members), rank, 0);
}

Core::Core(std::shared_ptr<comm::World> world, std::shared_ptr<shm::Mapping> segment,
           std::byte* memory, std::vector<int> members, int rank, std::uint64_t id)
    : world_(std::move(world)),
      segment_(std::move(segment)),
      memory_(memory),
      members_(std::move(members)),
      rank_(rank),
      id_(id),
      flight_recorders_(boards_of(world_->hosts(), members_, memory)),
      collective_lanes_(world_->roads(), memory, members_, rank, id, Lanes::Use::collectives),
      executor_(collective_lanes_.get(), !world_->crowded()),
      planner_(world_->programs(), world_->profile(), rank, static_cast<int>(members_.size()), id,
               world_->options().algorithm, collective_lanes_.get().limits().multicast,
               comm::AcrossHosts(world_->hosts(), members_)) {
  if (trace::Recorder* const recorder = world_->recorder()) {
    executor_.record(recorder->writer(id_, members_));
  }
  std::vector<int> here;
  std::copy_if(members_.begin(), members_.end(), std::back_inserter(here),
               [this](int member) { return world_->hosts().is_here(member); });
  comm::introduce_group(memory, here,
                        {.id = id,
                         .world = comm::world_mark(world_->options().job),
                         .size = static_cast<int>(members_.size()),
                         .first = members_.front()});
}

Core::Transfers::Transfers(const Core& core)
    : lanes(core.world_->roads(), core.memory_, core.members_, core.rank_, core.id_,
            Lanes::Use::transfers),
      queue(lanes.get(), core.id_, [&core](int rank) { return core.name(rank); }),
      writer(core.world_->recorder() == nullptr
                 ? trace::TraceWriter()
                 : core.world_->recorder()->writer(core.id_, core.members_)) {}

Core::~Core() {
  if (!world_->same_process()) {  // the child of a fork has no progress thread, and maybe its locks
    collective_lanes_.leave_behind();
    if (transfers_ != nullptr) {
      transfers_->lanes.leave_behind();
    }
    return;
  }
  if (listed_) {
    world_->progress().remove(*this);
  }
  if (comm::RemoteRecords* const remote = world_->remote_records()) {
    remote->forget(id_);
  }
  // What peers have not read yet stays in our slots, which other groups would use again.
  const auto reclaim = [this] {
    const bool taken_back = collective_lanes_.reclaim();
    const bool all = taken_back && (transfers_ == nullptr || transfers_->lanes.reclaim());
    return all ? Polled::finished : Polled::idle;
  };
  Waiter(*world_, 1000).wait(reclaim, [] {});
}

void Core::check_process() const {
  if (!world_->same_process()) {
    throw Error(ErrorCode::usage,
                "this process is a fork of the one that joined the world\n"
                "a communicator cannot be used in the child: exec a program there, or fork before "
                "connecting",
                {.rank = world_->rank()});
  }
}

void Core::check_usable() const {
  check_process();
  if (world_->aborted()) {
    world_->throw_abort({.rank = world_->rank()});
  }
}

void Core::refuse_blocking() const {
  check_usable();
  throw Error(ErrorCode::usage,
              "a blocking call inside group()\nuse the async form there: group() waits for all",
              {.rank = world_->rank()});
}

void Core::refuse_second_thread() const {
  throw Error(ErrorCode::usage,
              "another thread is in a call on this communicator\none thread at a time uses a "
              "communicator: make one for each with split(), or take turns",
              {.rank = world_->rank()});
}

int Core::hosts() const {
  std::set<int> hosts;
  for (const int member : members_) {
    hosts.insert(world_->hosts().host(member));
  }
  return static_cast<int>(hosts.size());
}

int Core::effective_timeout(int timeout_ms) const {
  return timeout_ms >= 0 ? timeout_ms : world_->options().timeout_ms;
}

void Core::run(const Call& call) {
  check_blocking();
  if (const Alone alone(*this, collecting_); alone) {
    execute(*planner_.find(call), call);
    return;
  }
  const auto request = run_async(call);
  wait(*request, call.timeout_ms);
}

void Core::start(const PlanState& plan) {
  check_blocking();
  if (const Alone alone(*this, collecting_); alone) {
    execute(*plan.prepared, plan.call);
    return;
  }
  const auto request = start_async(plan);
  wait(*request, plan.call.timeout_ms);
}

std::unique_ptr<PlanState> Core::plan(const Call& call) {
  check_usable();
  const Planning planning(*this);
  auto plan = std::make_unique<PlanState>();
  plan->core = shared_from_this();
  plan->prepared = planner_.find(call);
  plan->call = call;
  // The plan has taken what it needs of the lists, which belong to the caller.
  plan->call.counts = plan->call.displs = {};
  plan->call.recv_counts = plan->call.recv_displs = {};
  plan->call.algorithm = {};
  return plan;
}

Explanation Core::explain(const Call& call) {
  check_usable();
  const Planning planning(*this);
  return planner_.explain(call);
}

void Core::execute(const Prepared& prepared, const Call& call) {
  begin(prepared, call);
  wait_blocking(prepared, call.timeout_ms);
  finish(prepared, call);
}

void Core::begin(const Prepared& prepared, const Call& call, std::uint64_t salt) {
  if (scratch_.size() < prepared.workspace_bytes) {
    scratch_.resize(prepared.workspace_bytes);  // first: it may throw, and nothing has begun
  }
  ++sequence_;
  if (executor_.writer().on()) {
    record_begin(prepared);
  }
  signature_ = mix(prepared.signature ^ sequence_ ^ salt);
  comm::write_record(my_flight_recorder(), sequence_, signature_, prepared.record);
  std::byte* in = static_cast<std::byte*>(const_cast<void*>(call.in));
  std::byte* out = static_cast<std::byte*>(call.out);
  if (prepared.collective == Collective::barrier) {
    in = &barrier_token_[0];
    out = &barrier_token_[1];
  }
  if (prepared.stage_input && prepared.staged_bytes != 0) {
    std::byte* staged = scratch_.data() + prepared.staged_offset;
    if (prepared.multiply != nullptr) {
      prepared.multiply(staged, call.in, prepared.staged_bytes / size_of(call.dtype),
                        prepared.factor);
    } else {
      std::memcpy(staged, call.in, prepared.staged_bytes);
    }
    if (executor_.writer().on()) {
      executor_.writer().stamp();
    }
    in = staged;
  }
  executor_.start({.program = &prepared.program,
                   .buffers = {in, out, scratch_.data()},
                   .output_bytes = prepared.extent.output,
                   .reducer = prepared.reducer,
                   .signature = signature_});
}

void Core::finish(const Prepared& prepared, const Call& call) {
  end_wait();
  if (prepared.finish != nullptr && prepared.extent.output != 0) {
    prepared.finish(call.out, call.out, prepared.extent.output / size_of(call.dtype), size());
    if (executor_.writer().on()) {
      executor_.writer().stamp();
    }
  }
  if (executor_.writer().on()) {
    executor_.writer().end();
  }
}

void Core::record_begin(const Prepared& prepared) {
  if (prepared.recorded < 0) {
    prepared.recorded = world_->recorder()->name(prepared.collective, prepared.algorithm);
  }
  executor_.writer().begin(
      prepared.recorded, sequence_, std::max(prepared.extent.input, prepared.extent.output),
      is_rooted(prepared.collective) ? prepared.root : -1,
      trace::recording::pack_terms(static_cast<int>(prepared.dtype), static_cast<int>(prepared.op),
                                   prepared.runs_in_place));
}

void Core::wait_blocking(const Prepared& prepared, int timeout_ms) {
  if (executor_.poll() != Progress::finished) {
    wait_until_finished(prepared, timeout_ms);
  }
  // A peer that was told of an abort may have changed what this rank read from its memory.
  if (world_->aborted_meanwhile()) {
    throw_abort(&prepared);
  }
}

void Core::wait_until_finished(const Prepared& prepared, int timeout_ms) {
  Waiter waiter(*world_, effective_timeout(timeout_ms));
  const auto poll = [&] {
    switch (executor_.poll()) {
      case Progress::finished:
        return Polled::finished;
      case Progress::advanced:
        if (world_->aborted()) {  // long work on what has come already
          throw_abort(&prepared);
        }
        return Polled::advanced;
      case Progress::failed:
        raise_fault();
        throw_abort(&prepared);
      case Progress::idle:
        break;
    }
    return Polled::idle;
  };
  const auto verdict = waiter.wait(poll, [this] { look_around(); });
  if (verdict == Waiter::Verdict::timed_out) {
    raise_timeout(waiter.waited_s());
  }
  if (verdict != Waiter::Verdict::finished) {
    throw_abort(&prepared);
  }
}

void Core::abort(std::string_view reason) {
  std::string text = "rank " + std::to_string(world_->rank()) + " called abort()";
  if (!reason.empty()) {
    text += ": " + std::string(reason);
  }
  world_->raise(ErrorCode::aborted, world_->rank(), text);
}

std::optional<Error> Core::failure() {
  check_process();
  return world_->failure();
}

}  // namespace unisono::detail
