#include "engine/segmented_run.h"

#include <algorithm>

#include "engine/coded_lengths.h"
#include "engine/coded_pieces.h"

namespace unisono::engine {
namespace {

// Number of bytes of an offer that one poll fetches, if no other pass waits for the first bytes of
// the data.
constexpr std::size_t kFetchBytes = std::size_t{512} << 10;

}  // namespace

SegmentedRun::SegmentedRun(Execution& run, const transport::SendLimits& limits)
    : run_(run),
      send_limits_(limits),
      in_(2 * static_cast<std::size_t>(run.ranks)),
      out_sequence_(static_cast<std::size_t>(run.ranks) + 1) {}

void SegmentedRun::start() {
  output_shared_ = run_.operation.output_bytes >= send_limits_.least_shared_bytes &&
                   run_.transport.shareable_bytes(
                       transport::kEveryLane,
                       run_.operation.buffers[static_cast<std::size_t>(OperandPlace::output)],
                       run_.operation.output_bytes) != 0;
  const auto& passes = run_.operation.program->passes;
  states_.assign(passes.size(), {});  // allocates only for a larger program
  if (run_.writer.on()) {
    busy_.assign(passes.size(), {});
  }
  active_.clear();
  for (std::uint32_t i = 0; i < passes.size(); ++i) {
    if (passes[i].bytes == 0) {
      states_[i].finished = true;
    } else {
      active_.push_back(i);
    }
  }
  for (Arriving& arriving : in_) {
    arriving.sequence = 0;
    arriving.open = false;
  }
  std::fill(out_sequence_.begin(), out_sequence_.end(), 0);
}

Progress SegmentedRun::poll() noexcept {
  bool advanced = false;
  run_.lacked = Execution::kNothing;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < active_.size(); ++k) {
    const std::uint32_t i = active_[k];
    const BoundPass& pass = run_.operation.program->passes[i];
    State& state = states_[i];
    if (state.done < pass.bytes) {
      const Progress progress =
          pass.send ? advance_send(pass, state) : advance_compute(pass, state);
      if (progress == Progress::failed) {
        return progress;
      }
      advanced |= progress == Progress::advanced;
    }
    if (!settle(pass, state)) {
      active_[kept++] = i;
    }
  }
  active_.resize(kept);
  if (kept == 0 && run_.flushed()) {
    return Progress::finished;
  }
  return advanced ? Progress::advanced : Progress::idle;
}

Progress SegmentedRun::poll_pass(std::uint32_t i) noexcept {
  const BoundPass& pass = run_.operation.program->passes[i];
  State& state = states_[i];
  Progress progress = Progress::idle;
  if (state.done < pass.bytes) {
    progress = pass.send ? advance_send(pass, state) : advance_compute(pass, state);
  }
  if (progress == Progress::failed || !settle(pass, state)) {
    return progress;
  }
  std::erase(active_, i);
  return Progress::finished;
}

bool SegmentedRun::settle(const BoundPass& pass, State& state) noexcept {
  if (state.done < pass.bytes) {
    return false;
  }
  if (state.shared) {
    const BoundOperand& lane = run_.operation.program->operands[pass.targets];
    if (!run_.transport.drained(lane.lane, state.mark)) {
      run_.lacks_reader(lane.lane);
      return false;
    }
  }
  state.finished = true;
  return true;
}

std::size_t SegmentedRun::allowed(const BoundPass& pass) const noexcept {
  std::size_t limit = pass.bytes;
  for (std::uint32_t i = pass.waits; i < pass.waits_end; ++i) {
    const Dependency& wait = run_.operation.program->waits[i];
    const auto other = static_cast<std::size_t>(wait.pass);
    const State& state = states_[other];
    const bool shown = wait.drained && state.shared && !state.finished;
    if (wait.whole || shown) {
      if (!state.finished && (shown || state.done < run_.operation.program->passes[other].bytes)) {
        return 0;
      }
    } else {
      limit = std::min(limit, state.finished ? pass.bytes : state.done);
    }
  }
  return limit;
}

Progress SegmentedRun::advance_send(const BoundPass& pass, State& state) noexcept {
  const BoundOperand& lane = run_.operation.program->operands[pass.targets];
  std::uint32_t& sequence = out_sequence_[static_cast<std::size_t>(lane.lane)];
  const std::size_t limit = allowed(pass);
  if (sequence != lane.sequence || limit <= state.done) {
    return Progress::idle;
  }
  const std::uint64_t begin = run_.writer.on() ? run_.writer.recent() : 0;
  const transport::Sent sent =
      pass.code != MoveCode::none
          ? send_coded(run_, pass, send_limits_.slot_bytes, state.done, limit)
          : transport::send_some(
                run_.transport, lane.lane, send_limits_,
                {.message = run_.own(run_.operation.program->operands[pass.sources]),
                 .bytes = pass.bytes,
                 .done = state.done,
                 .ready = limit,
                 .may_share = pass.may_share,
                 .may_offer = run_.operation.program->copies_only},
                [&](std::size_t bytes) { return run_.signature_of(pass, state.done, bytes); });
  if (sent.bytes == 0) {
    run_.lacks_reader(lane.lane);
    return Progress::idle;
  }
  if (sent.shared) {
    state.shared = true;
    state.mark = run_.transport.mark(lane.lane);
  }
  state.done += sent.bytes;
  if (state.done == pass.bytes) {
    ++sequence;
  }
  if (run_.writer.on()) {
    run_.writer.stamp();
    record_piece(pass, state, begin, sent.bytes);
  }
  return Progress::advanced;
}

// Sets `bytes` to the length for which all sources have data. Returns false if there is no data
// now, or a fault.
bool SegmentedRun::open_sources(const BoundPass& pass, const State& state,
                                std::size_t& bytes) noexcept {
  const BoundOperand* operands = run_.operation.program->operands.data();
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    const BoundOperand& source = operands[i];
    const void*& address = run_.sources[i - pass.sources];
    if (source.place != OperandPlace::lane) {
      address = run_.own(source) + state.done;
      continue;
    }
    Arriving& arriving = in_[static_cast<std::size_t>(source.lane)];
    if (arriving.sequence != source.sequence) {
      return false;
    }
    if (!arriving.open) {
      transport::Incoming message;
      const bool encoded = pass.code != MoveCode::none;
      const bool may_fetch = pass.sources_end - pass.sources == 1 && !pass.transient && !encoded;
      if (!(may_fetch ? run_.transport.peek_unread(source.lane, message)
                      : run_.transport.peek(source.lane, message))) {
        run_.lacks_message(source.lane);
        return false;
      }
      const bool offered_to_many =
          message.offered() && (pass.sources_end - pass.sources != 1 || encoded);
      if (message.signature != run_.signature_of(pass, state.done, message.bytes) ||
          !fits(pass, state.done, message.bytes) || offered_to_many) {
        run_.note_fault(pass, source.lane, message);
        return false;
      }
      arriving.message = message;
      arriving.fetched = 0;
      arriving.open = true;
    }
    address = arriving.message.data;
    bytes = std::min(bytes, plain_bytes(pass, arriving.message.bytes));
  }
  return true;
}

// Fetches the pass's only source, which is an offer, directly to the pass's target. Returns false
// if no data came.
bool SegmentedRun::fetch(const BoundPass& pass, const State& state, std::size_t& bytes) noexcept {
  const BoundOperand* operands = run_.operation.program->operands.data();
  const int lane = operands[pass.sources].lane;
  std::byte* target = run_.own(operands[pass.targets]) + state.done;
  const std::size_t offset = in_[static_cast<std::size_t>(lane)].fetched;
  bytes = run_.transport.fetch(
      lane, offset, target,
      std::min(bytes, pass.forwards == pass.forwards_end ? kFetchBytes : send_limits_.slot_bytes));
  run_.sources[0] = target;
  return bytes != 0;
}

void SegmentedRun::close_sources(const BoundPass& pass, const State& state,
                                 std::size_t bytes) noexcept {
  const BoundOperand* operands = run_.operation.program->operands.data();
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    if (operands[i].place != OperandPlace::lane) {
      continue;
    }
    Arriving& arriving = in_[static_cast<std::size_t>(operands[i].lane)];
    const std::size_t taken = message_bytes(pass, bytes);
    if (arriving.message.offered()) {
      arriving.fetched += taken;
    } else {
      arriving.message.data += taken;
    }
    arriving.message.bytes -= taken;
    if (arriving.message.bytes == 0) {
      arriving.open = false;
      run_.transport.release(operands[i].lane);
    }
    if (state.done == pass.bytes) {
      ++arriving.sequence;
    }
  }
}

// Finds the fused sends that are at the same position as this pass and have room, so that they can
// take the segment. Puts their room in front of targets_. Returns their number.
int SegmentedRun::open_forwards(const BoundPass& pass, const State& state,
                                std::size_t bytes) noexcept {
  const BoundProgram& program = *run_.operation.program;
  int taken = 0;
  for (std::uint32_t k = pass.forwards; k < pass.forwards_end; ++k) {
    const std::uint32_t i = program.forwards[k];
    const BoundOperand& lane = program.operands[program.passes[i].targets];
    const bool level = states_[i].done == state.done &&
                       out_sequence_[static_cast<std::size_t>(lane.lane)] == lane.sequence;
    std::byte* room =
        level && taken < kernels::kMaxSources ? run_.transport.reserve(lane.lane, bytes) : nullptr;
    if (room != nullptr) {
      took_[taken] = i;
      run_.targets[taken++] = room;
    }
  }
  return taken;
}

void SegmentedRun::commit_forwards(int taken, std::size_t bytes) noexcept {
  const BoundProgram& program = *run_.operation.program;
  for (int k = 0; k < taken; ++k) {
    const BoundPass& forward = program.passes[took_[k]];
    const BoundOperand& lane = program.operands[forward.targets];
    std::size_t& done = states_[took_[k]].done;
    run_.transport.commit(lane.lane, bytes, run_.signature_of(forward, done, bytes));
    done += bytes;
    if (done == forward.bytes) {
      ++out_sequence_[static_cast<std::size_t>(lane.lane)];
    }
  }
}

// Returns the kind of store for data that the readers of the pass's forwards will read. REQUIRES:
// the pass has a forward.
kernels::Store SegmentedRun::store_to_readers(const BoundPass& pass,
                                              std::size_t bytes) const noexcept {
  const BoundProgram& program = *run_.operation.program;
  const BoundPass& forward = program.passes[program.forwards[pass.forwards]];
  return run_.transport.store(program.operands[forward.targets].lane, bytes);
}

Progress SegmentedRun::advance_compute(const BoundPass& pass, State& state) noexcept {
  const std::size_t limit = allowed(pass);
  if (limit <= state.done) {
    return Progress::idle;
  }
  std::size_t bytes = limit - state.done;
  run_.fault.from = -1;
  if (!open_sources(pass, state, bytes)) {
    return run_.fault.from < 0 ? Progress::idle : Progress::failed;
  }
  const std::uint64_t begin = run_.writer.on() ? run_.writer.stamp() : 0;
  const bool is_offer = run_.sources[0] == nullptr;
  if (!is_offer) {
    bytes = std::min(bytes, send_limits_.slot_bytes);
    if (pass.code != MoveCode::none && !decode_sources(run_, pass, state.done, bytes)) {
      return Progress::idle;
    }
  } else if (!fetch(pass, state, bytes)) {
    return Progress::idle;
  }
  const BoundProgram& program = *run_.operation.program;
  const BoundOperand& first = program.operands[pass.targets];
  int taken = 0;
  if (pass.transient) {
    taken = open_forwards(pass, state, bytes);
    const bool all = taken == static_cast<int>(pass.forwards_end - pass.forwards);
    int targets = taken;
    if (!all) {
      run_.targets[targets++] = run_.own(first) + state.done;
    }
    run_.combine(pass, bytes, targets,
                 all ? store_to_readers(pass, bytes) : kernels::Store::cached);
    commit_forwards(taken, bytes);
  } else if (pass.forwards != pass.forwards_end && shows(first, bytes)) {
    // The sends will refer to this memory directly.
    run_.targets[0] = run_.own(first) + state.done;
    run_.combine(pass, bytes, 1, store_to_readers(pass, bytes));
  } else {
    int targets = 0;
    for (std::uint32_t i = pass.targets; i < pass.targets_end; ++i) {
      run_.targets[targets++] = run_.own(program.operands[i]) + state.done;
    }
    const std::byte* result = run_.own(first) + state.done;
    run_.combine(pass, bytes, targets, pass.store);
    taken = open_forwards(pass, state, bytes);
    for (int k = 0; k < taken; ++k) {
      const BoundPass& forward = program.passes[took_[k]];
      run_.transport.fill(program.operands[forward.targets].lane,
                          static_cast<std::byte*>(run_.targets[k]), result, bytes);
    }
    commit_forwards(taken, bytes);
  }
  state.done += bytes;
  close_sources(pass, state, bytes);
  if (run_.writer.on()) {
    run_.writer.stamp();
    record_piece(pass, state, begin, bytes);
    record_forwards(taken, begin, bytes);
  }
  return Progress::advanced;
}

// Returns true if the sends of this output will send references, not copies.
bool SegmentedRun::shows(const BoundOperand& target, std::size_t bytes) const noexcept {
  return output_shared_ && target.place == OperandPlace::output &&
         bytes >= send_limits_.least_shared_bytes;
}

// Records that `bytes` have just been completed. Fused sends have no busy time of their own.
void SegmentedRun::record_piece(const BoundPass& pass, const State& state, std::uint64_t begin,
                                std::size_t bytes, bool riding) noexcept {
  BusyTicks& busy = busy_[static_cast<std::size_t>(&state - states_.data())];
  if (state.done == bytes) {
    busy = {.begin = begin};
  }
  busy.ticks += riding ? 0 : run_.writer.recent() - begin;
  if (state.done == pass.bytes) {
    run_.record(pass, busy);
  }
}

void SegmentedRun::record_forwards(int taken, std::uint64_t begin, std::size_t bytes) noexcept {
  for (int k = 0; k < taken; ++k) {
    record_piece(run_.operation.program->passes[took_[k]], states_[took_[k]], begin, bytes, true);
  }
}

std::vector<Wait> SegmentedRun::waits() const {
  const BoundProgram& program = *run_.operation.program;
  std::vector<Wait> missing;
  std::vector<Wait> full;
  for (const std::uint32_t i : active_) {
    const BoundPass& pass = program.passes[i];
    const State& state = states_[i];
    const bool done = state.done == pass.bytes;
    if (!done && allowed(pass) <= state.done) {
      continue;  // waits for another pass
    }
    if (pass.send) {
      const BoundOperand& lane = program.operands[pass.targets];
      const bool is_next = out_sequence_[static_cast<std::size_t>(lane.lane)] == lane.sequence;
      if (done || is_next) {
        full.push_back({.rank = run_.transport.slowest_reader(lane.lane), .step = pass.step});
      }
      continue;
    }
    for (std::uint32_t k = pass.sources; k < pass.sources_end; ++k) {
      const BoundOperand& source = program.operands[k];
      if (source.place == OperandPlace::lane && is_missing(source)) {
        missing.push_back({.rank = run_.rank_of(source.lane), .step = pass.step});
      }
    }
  }
  missing.insert(missing.end(), full.begin(), full.end());
  return missing;
}

bool SegmentedRun::is_amid_message() const noexcept {
  return std::any_of(in_.begin(), in_.end(), [](const Arriving& one) { return one.open; });
}

bool SegmentedRun::is_missing(const BoundOperand& source) const noexcept {
  const Arriving& arriving = in_[static_cast<std::size_t>(source.lane)];
  transport::Incoming message;
  return arriving.sequence == source.sequence && !arriving.open &&
         !run_.transport.peek(source.lane, message);
}

}  // namespace unisono::engine
