#include "comm/operations.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "base/collectives.h"
#include "base/hash.h"
#include "bootstrap/local_host.h"
#include "comm/group.h"
#include "comm/labels.h"
#include "comm/waiter.h"
#include "engine/executor.h"
#include "select/planner.h"

namespace unisono::comm {
namespace {

using engine::Progress;

constexpr int kReclaimMs = 1000;

std::uint64_t polls_of_a_wait(const Group& group) {
  return group.world().host().oversubscribed() ? Accounts::kOversubscribed : Accounts::kPatient;
}

int kind_of(const Prepared& prepared) noexcept {
  return static_cast<int>(prepared.collective);
}

std::size_t bytes_of(const Prepared& prepared) noexcept {
  return std::max(prepared.extent.input, prepared.extent.output);
}

// Returns the time in the unit and epoch of flight_clock_ns().
std::int64_t ns_of(WaitClock::Clock::time_point time) noexcept {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

int kind_of(const PendingTransfer& transfer) noexcept {
  return transfer.send ? kSendKind : kRecvKind;
}

}  // namespace

struct Operations::Transfers {
  explicit Transfers(const Group& group)
      : lanes(group.make_lanes(Fabric::Use::transfers)),
        queue(*lanes, group.id(), [&group](int rank) { return group.name(rank); }),
        writer(group.make_writer()) {}
  std::unique_ptr<transport::Transport> lanes;
  PointToPoint queue;
  trace::TraceWriter writer;
};

Operations::Operations(Group& group)
    : group_(group),
      lanes_(group.make_lanes(Fabric::Use::collectives)),
      executor_(
          std::make_unique<engine::Executor>(*lanes_, !group.world().host().oversubscribed())),
      diagnosis_(std::make_unique<Diagnosis>(
          group.records(), *executor_, group.world().membership().watch(),
          group.world().membership().abort(), group.world().waits(),
          [&world = group.world()](int rank) { return label_of(world, rank); })),
      accounts_(group.members(), group.records().costs(), polls_of_a_wait(group)),
      transfer_accounts_(group.members(), group.records().costs(), polls_of_a_wait(group)) {
  executor_->record(group.make_writer());
}

Operations::~Operations() {
  if (!group_.world().same_process()) {  // the child of a fork may have inherited held locks
    lanes_->abandon();
    if (transfers_ != nullptr) {
      transfers_->lanes->abandon();
    }
    return;
  }
  // Data that peers have not read yet is in this rank's slots, which other groups will reuse.
  const auto reclaim = [this] {
    const bool taken_back = lanes_->reclaim();
    const bool all = taken_back && (transfers_ == nullptr || transfers_->lanes->reclaim());
    return all ? Polled::finished : Polled::idle;
  };
  Waiter(group_.world().wait_environment(), kReclaimMs).wait(reclaim, [] {});
  close_lanes();  // late messages must not find memory that is freed before the lanes
  diagnosis_->look_back(latest_);
  group_.records().keep_last(latest_.sequence);
}

void Operations::begin(const Prepared& prepared, const Call& call, const Prepared& counted,
                       std::uint64_t salt) {
  accounts_.begin(kind_of(counted), bytes_of(counted), false);
  start(prepared, call, salt);
}

void Operations::start(const Prepared& prepared, const Call& call, std::uint64_t salt) {
  if (scratch_.size() < prepared.workspace_bytes) {
    scratch_.resize(prepared.workspace_bytes);  // first: it may throw
  }
  ++latest_.sequence;
  if (executor_->writer().on()) {
    record_begin(prepared);
  }
  // Includes the signature of the previous call. If two ranks disagreed in a call without noticing
  // it (such as two roots of a broadcast), they notice it in the next call of any kind.
  latest_.signature = mix(prepared.signature ^ latest_.sequence ^ salt ^ mix(latest_.signature));
  write_record(group_.records().mine(), latest_.sequence, latest_.signature, prepared.record);
  std::byte* in = static_cast<std::byte*>(const_cast<void*>(call.in));
  std::byte* out = static_cast<std::byte*>(call.out);
  if (prepared.collective == Collective::barrier) {
    in = &barrier_token_[0];
    out = &barrier_token_[1];
  }
  if (prepared.stage_input && prepared.extent.input != 0) {
    std::byte* staged = scratch_.data() + prepared.staged_input;
    if (prepared.around.before != nullptr) {
      prepared.around.before(staged, call.in, prepared.extent.input / size_of(call.dtype),
                             prepared.factor);
    } else {
      std::memcpy(staged, call.in, prepared.extent.input);
    }
    if (executor_->writer().on()) {
      executor_->writer().stamp();
    }
    in = staged;
  }
  if (prepared.narrows()) {
    out = scratch_.data() + prepared.staged_output;
  }
  executor_->start({.program = &prepared.program,
                    .buffers = {in, out, scratch_.data()},
                    .output_bytes = prepared.moved.output,
                    .reducer = prepared.reducer,
                    .signature = latest_.signature});
}

void Operations::finish(const Prepared& prepared, const Call& call) {
  accounts_.end();
  diagnosis_->end_wait();
  if (prepared.around.after != nullptr && prepared.extent.output != 0) {
    const void* const made =
        prepared.narrows() ? scratch_.data() + prepared.staged_output : call.out;
    prepared.around.after(call.out, made, prepared.extent.output / size_of(call.dtype),
                          prepared.around.divisor);
    if (executor_->writer().on()) {
      executor_->writer().stamp();
    }
  }
  if (executor_->writer().on()) {
    executor_->writer().end();
  }
}

void Operations::record_begin(const Prepared& prepared) {
  if (prepared.recorded < 0) {
    prepared.recorded = group_.world().recorder()->name(prepared.collective, prepared.algorithm);
  }
  executor_->writer().begin(
      prepared.recorded, latest_.sequence, bytes_of(prepared),
      is_rooted(prepared.collective) ? prepared.root : -1,
      trace::recording::pack_terms(static_cast<int>(prepared.dtype), static_cast<int>(prepared.op),
                                   prepared.runs_in_place));
}

void Operations::run(const Prepared& prepared, const Call& call, const Prepared& counted,
                     int timeout_ms) {
  accounts_.begin(kind_of(counted), bytes_of(counted), true);
  start(prepared, call, 0);
  if (executor_->poll() != Progress::finished) {
    wait(prepared, timeout_ms);
  }
  // A peer that received an abort may have changed the memory that this rank read.
  if (group_.world().membership().abort().is_set_meanwhile()) {
    throw_abort(&prepared);
  }
  finish(prepared, call);
}

void Operations::wait(const Prepared& prepared, int timeout_ms) {
  World& world = group_.world();
  Waiter waiter(world.wait_environment(), timeout_ms);
  const auto now_ns = [&waiter] { return ns_of(waiter.polled_at()); };
  const auto late = [this] { return late_rank(); };
  const auto poll = [&] {
    switch (executor_->poll()) {
      case Progress::finished:
        accounts_.advanced(now_ns);
        return Polled::finished;
      case Progress::advanced:
        if (world.membership().abort().is_set()) {  // long work on received data
          throw_abort(&prepared);
        }
        accounts_.advanced(now_ns);
        return Polled::advanced;
      case Progress::failed:
        diagnosis_->raise_fault(latest_);
        throw_abort(&prepared);
      case Progress::idle:
        break;
    }
    accounts_.idle(late, now_ns);
    return Polled::idle;
  };
  const auto verdict = waiter.wait(
      poll, [&] { diagnosis_->look_around(latest_, world.standing(waiter.since(), 0)); });
  if (verdict == Waiter::Verdict::timed_out) {
    diagnosis_->raise_timeout(latest_, waiter.waited_s());
  }
  if (verdict != Waiter::Verdict::finished) {
    throw_abort(&prepared);
  }
}

Progress Operations::poll() noexcept {
  return executor_->poll();
}

void Operations::note_idle() noexcept {
  accounts_.idle([this] { return late_rank(); }, flight_clock_ns);
}

// Returns the rank that causes the wait. The rank whose message is missing may itself be waiting
// for a rank that has not entered the call, as in a ring.
int Operations::late_rank() const noexcept {
  const int missing = executor_->missing();
  if (missing < 0 || !has_entered(missing)) {
    return missing;
  }
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (!has_entered(rank)) {
      return rank;
    }
  }
  return missing;
}

// For ranks on other hosts, the latest information is in their messages.
bool Operations::has_entered(int rank) const noexcept {
  const FlightRecorder* const recorder = group_.records().here(rank);
  return recorder == nullptr || recorder->entries[latest_.sequence % kFlightEntries].sequence.load(
                                    std::memory_order_relaxed) >= latest_.sequence;
}

Statistics Operations::statistics() const {
  Statistics statistics;
  accounts_.read(statistics);
  transfer_accounts_.read(statistics);
  return statistics;
}

Operations::Transfers& Operations::open_transfers() {
  transfers_ = std::make_unique<Transfers>(group_);
  return *transfers_;
}

PointToPoint::Progress Operations::poll_transfers() {
  return transfers().queue.poll();
}

PendingTransfer* Operations::take_finished() {
  return transfers().queue.take_finished();
}

void Operations::begin(PendingTransfer& transfer, bool blocking) {
  transfer_accounts_.begin(kind_of(transfer), transfer.bytes, blocking);
  Transfers& all = transfers();
  if (all.writer.on()) {
    transfer.recorded =
        all.writer.begin_transfer(transfer.send, transfer.peer, transfer.tag, transfer.bytes);
  }
  all.queue.post(transfer);
}

bool Operations::send_now(PendingTransfer& transfer) {
  Transfers& all = transfers();
  if (!all.queue.send_now(transfer)) {
    return false;
  }
  transfer_accounts_.begin(kSendKind, transfer.bytes, false);
  if (all.writer.on()) {
    transfer.recorded =
        all.writer.begin_transfer(true, transfer.peer, transfer.tag, transfer.bytes);
    end(transfer);
  }
  return true;
}

void Operations::end(const PendingTransfer& transfer) {
  if (!transfer.send) {
    transfer_accounts_.add_received(transfer.bytes);
  }
  trace::TraceWriter& writer = transfers().writer;
  if (writer.on()) {
    writer.end_transfer(transfer.recorded, transfer.peer, transfer.bytes);
  }
}

void Operations::raise_transfer_fault() {
  const PointToPoint& queue = transfers().queue;
  diagnosis_->raise_transfer_fault(queue.fault_peer(), queue.fault());
}

void Operations::run(std::span<PendingTransfer> transfers, int timeout_ms) {
  World& world = group_.world();
  for (PendingTransfer& transfer : transfers) {
    begin(transfer, true);
  }
  const auto unfinished = [&] {
    return std::find_if_not(transfers.begin(), transfers.end(), PointToPoint::finished);
  };
  Waiter waiter(world.wait_environment(), timeout_ms);
  const auto now_ns = [&waiter] { return ns_of(waiter.polled_at()); };
  const auto poll = [&] {
    if (unfinished() == transfers.end()) {
      return Polled::finished;
    }
    auto progress = PointToPoint::Progress::idle;
    try {
      progress = poll_transfers();
    } catch (const std::exception& error) {
      world.membership().abort().raise(error);  // the peers wait for this rank
      throw_abort(nullptr);
    }
    if (progress == PointToPoint::Progress::failed) {
      raise_transfer_fault();
      throw_abort(nullptr);
    }
    if (progress != PointToPoint::Progress::advanced) {
      transfer_accounts_.idle([&unfinished] { return unfinished()->peer; }, now_ns);
      return Polled::idle;
    }
    transfer_accounts_.advanced(now_ns);
    if (world.membership().abort().is_set()) {  // long work on received data
      throw_abort(nullptr);
    }
    return Polled::advanced;
  };
  Diagnosis::TransferWait wait;
  const auto check = [&] {
    const auto first = unfinished();
    if (first == transfers.end()) {
      return;
    }
    Standing standing = world.standing(waiter.since(), 0);
    standing.alone =
        standing.alone && std::all_of(first + 1, transfers.end(), PointToPoint::finished);
    diagnosis_->look_around(state_of(*first), wait, standing);
  };
  const auto verdict = waiter.wait(poll, check);
  if (verdict == Waiter::Verdict::timed_out) {
    diagnosis_->raise_transfer_timeout(state_of(*unfinished()), waiter.waited_s());
  }
  if (verdict != Waiter::Verdict::finished) {
    throw_abort(nullptr);
  }
  transfer_accounts_.end();
  diagnosis_->end_wait();
  if (world.membership().abort().is_set_meanwhile()) {
    throw_abort(nullptr);
  }
  for (const PendingTransfer& transfer : transfers) {
    end(transfer);
  }
}

void Operations::close_lanes() noexcept {
  lanes_->close();
  if (transfers_ != nullptr) {
    transfers_->lanes->close();
  }
}

void Operations::throw_abort(const Prepared* prepared) {
  group_.world().membership().abort().throw_to_program(end(prepared));
}

Error Operations::end(const Prepared* prepared, bool has_begun) {
  diagnosis_->end_wait();
  close_lanes();
  ErrorContext context{.rank = group_.world().rank()};
  if (prepared != nullptr) {
    context.collective = std::string(to_string(prepared->collective));
  }
  if (prepared != nullptr && has_begun) {
    context.op_seq = static_cast<std::int64_t>(latest_.sequence);
    context.step = static_cast<int>(executor_->waiting().step) + 1;
  }
  return group_.world().membership().abort().reason(std::move(context));
}

TransferState state_of(const PendingTransfer& transfer) {
  return {.send = transfer.send,
          .peer = transfer.peer,
          .tag = transfer.tag,
          .bytes = transfer.bytes,
          .done = transfer.done};
}

}  // namespace unisono::comm
