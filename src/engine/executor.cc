#include "engine/executor.h"

#include <algorithm>
#include <cstring>

namespace unisono::engine {
namespace {

// Shorter pieces of registered memory are copied: waiting for the reader to be done costs more than
// the copy, and most where the reader has to get the core first.
constexpr std::size_t kShareBytes = 1024;
constexpr std::size_t kShareBytesCrowded = 8192;
// How much of an offer one poll fetches, if nobody waits for its beginning.
constexpr std::size_t kFetchBytes = std::size_t{512} << 10;
// How often a patient poll looks for a short message: the usual wait is one line transfer.
constexpr int kLooks = 16;

}  // namespace

Executor::Executor(transport::Transport& transport, bool patient)
    : transport_(transport),
      ranks_(transport.ranks()),
      send_limits_(
          transport::send_limits(transport.limits(), patient ? kShareBytes : kShareBytesCrowded)),
      through_kernel_(transport.limits().through_kernel),
      looks_(patient && !through_kernel_ ? kLooks : 1),
      in_(2 * static_cast<std::size_t>(ranks_)),
      out_sequence_(static_cast<std::size_t>(ranks_) + 1) {}

void Executor::start_general() {
  if (operation_.reducer.user != nullptr) {
    bounce_.resize(
        std::max(send_limits_.slot_bytes, kSmallLane));  // the longest pass of a small program
  }
  if (operation_.program->small) {
    return;
  }
  output_shared_ = operation_.output_bytes >= send_limits_.least_shared_bytes &&
                   transport_.can_share(transport::kEveryLane,
                                        operation_.buffers[static_cast<std::size_t>(Place::output)],
                                        operation_.output_bytes);
  const auto& passes = operation_.program->passes;
  states_.assign(passes.size(), {});  // allocates only when a larger program comes
  if (writer_.on()) {
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

Progress Executor::poll_general() noexcept {
  bool advanced = false;
  lacked_ = kNothing;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < active_.size(); ++k) {
    const std::uint32_t i = active_[k];
    const BoundPass& pass = operation_.program->passes[i];
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
  if (kept == 0 && flushed()) {
    return Progress::finished;
  }
  return advanced ? Progress::advanced : Progress::idle;
}

Progress Executor::poll_pass(std::uint32_t i) noexcept {
  const BoundPass& pass = operation_.program->passes[i];
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

bool Executor::settle(const BoundPass& pass, State& state) noexcept {
  if (state.done < pass.bytes) {
    return false;
  }
  if (state.shared) {
    const BoundOperand& lane = operation_.program->operands[pass.targets];
    if (!transport_.drained(lane.lane, state.mark)) {
      lacks_reader(lane.lane);
      return false;
    }
  }
  state.finished = true;
  return true;
}

std::size_t Executor::allowed(const BoundPass& pass) const noexcept {
  std::size_t limit = pass.bytes;
  for (std::uint32_t i = pass.waits; i < pass.waits_end; ++i) {
    const Dependency& wait = operation_.program->waits[i];
    const auto other = static_cast<std::size_t>(wait.pass);
    const State& state = states_[other];
    const bool shown = wait.drained && state.shared && !state.finished;
    if (wait.whole || shown) {
      if (!state.finished && (shown || state.done < operation_.program->passes[other].bytes)) {
        return 0;
      }
    } else {
      limit = std::min(limit, state.finished ? pass.bytes : state.done);
    }
  }
  return limit;
}

Progress Executor::advance_send(const BoundPass& pass, State& state) noexcept {
  const BoundOperand& lane = operation_.program->operands[pass.targets];
  std::uint32_t& sequence = out_sequence_[static_cast<std::size_t>(lane.lane)];
  const std::size_t limit = allowed(pass);
  if (sequence != lane.sequence || limit <= state.done) {
    return Progress::idle;
  }
  const std::uint64_t begin = writer_.on() ? writer_.recent() : 0;
  const transport::Sent sent = transport::send_some(
      transport_, lane.lane, send_limits_,
      {.message = own(operation_.program->operands[pass.sources]),
       .bytes = pass.bytes,
       .done = state.done,
       .ready = limit,
       .may_share = pass.may_share,
       .may_offer = operation_.program->copies_only},
      [&](std::size_t bytes) { return signature_of(pass, state.done, bytes); });
  if (sent.bytes == 0) {
    lacks_reader(lane.lane);
    return Progress::idle;
  }
  if (sent.shared) {
    state.shared = true;
    state.mark = transport_.mark(lane.lane);
  }
  state.done += sent.bytes;
  if (state.done == pass.bytes) {
    ++sequence;
  }
  if (writer_.on()) {
    writer_.stamp();
    record_piece(pass, state, begin, sent.bytes);
  }
  return Progress::advanced;
}

// All sources must have something: `bytes` becomes what all of them have. False: nothing now, or a
// fault.
bool Executor::open_sources(const BoundPass& pass, const State& state,
                            std::size_t& bytes) noexcept {
  const BoundOperand* operands = operation_.program->operands.data();
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    const BoundOperand& source = operands[i];
    const void*& address = sources_[i - pass.sources];
    if (source.place != Place::lane) {
      address = own(source) + state.done;
      continue;
    }
    Arriving& arriving = in_[static_cast<std::size_t>(source.lane)];
    if (arriving.sequence != source.sequence) {
      return false;
    }
    if (!arriving.open) {
      transport::Incoming message;
      const bool may_fetch = pass.sources_end - pass.sources == 1 && !pass.transient;
      if (!(may_fetch ? transport_.peek_unread(source.lane, message)
                      : transport_.peek(source.lane, message))) {
        lacks_message(source.lane);
        return false;
      }
      const bool offered_to_many = message.offered() && pass.sources_end - pass.sources != 1;
      if (message.signature != signature_of(pass, state.done, message.bytes) ||
          message.bytes > pass.bytes - state.done || message.bytes == 0 || offered_to_many) {
        fault_ = {.from = rank_of(source.lane),
                  .signature = message.signature,
                  .expected = pass.is_nothing ? 0 : pass.bytes,
                  .step = pass.step};
        return false;
      }
      arriving.message = message;
      arriving.fetched = 0;
      arriving.open = true;
    }
    address = arriving.message.data;
    bytes = std::min(bytes, arriving.message.bytes);
  }
  return true;
}

// The one source is an offer: it comes straight to where the pass wants it. False: nothing came.
bool Executor::fetch(const BoundPass& pass, const State& state, std::size_t& bytes) noexcept {
  const BoundOperand* operands = operation_.program->operands.data();
  const int lane = operands[pass.sources].lane;
  std::byte* target = own(operands[pass.targets]) + state.done;
  const std::size_t offset = in_[static_cast<std::size_t>(lane)].fetched;
  bytes = transport_.fetch(
      lane, offset, target,
      std::min(bytes, pass.forwards == pass.forwards_end ? kFetchBytes : send_limits_.slot_bytes));
  sources_[0] = target;
  return bytes != 0;
}

void Executor::close_sources(const BoundPass& pass, const State& state,
                             std::size_t bytes) noexcept {
  const BoundOperand* operands = operation_.program->operands.data();
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    if (operands[i].place != Place::lane) {
      continue;
    }
    Arriving& arriving = in_[static_cast<std::size_t>(operands[i].lane)];
    if (arriving.message.offered()) {
      arriving.fetched += bytes;
    } else {
      arriving.message.data += bytes;
    }
    arriving.message.bytes -= bytes;
    if (arriving.message.bytes == 0) {
      arriving.open = false;
      transport_.release(operands[i].lane);
    }
    if (state.done == pass.bytes) {
      ++arriving.sequence;
    }
  }
}

void Executor::combine(const BoundPass& pass, std::size_t bytes, int targets,
                       kernels::Store store) noexcept {
  const auto sources = static_cast<int>(pass.sources_end - pass.sources);
  const Reducer& reducer = operation_.reducer;
  if (sources == 1) {
    for (int i = 0; i < targets; ++i) {
      if (targets_[i] != sources_[0]) {
        kernels::copy(targets_[i], sources_[0], bytes, store);
      }
    }
  } else if (reducer.user == nullptr) {
    reducer.kernel(targets_, targets, sources_, sources, bytes / operation_.program->element,
                   store);
  } else {
    // In a bounce buffer, because a target may be one of the later sources.
    std::memcpy(bounce_.data(), sources_[0], bytes);
    for (int i = 1; i < sources; ++i) {
      reducer.user(bounce_.data(), sources_[i], bytes / operation_.program->element,
                   reducer.context);
    }
    for (int i = 0; i < targets; ++i) {
      std::memcpy(targets_[i], bounce_.data(), bytes);
    }
  }
  if (store == kernels::Store::streaming) {
    kernels::fence_streaming();
  }
}

// The sends that are at the same place as this pass, and have room, take the segment along: their
// room is put in front of targets_. Returns how many.
int Executor::open_forwards(const BoundPass& pass, const State& state, std::size_t bytes) noexcept {
  const BoundProgram& program = *operation_.program;
  int taken = 0;
  for (std::uint32_t k = pass.forwards; k < pass.forwards_end; ++k) {
    const std::uint32_t i = program.forwards[k];
    const BoundOperand& lane = program.operands[program.passes[i].targets];
    const bool level = states_[i].done == state.done &&
                       out_sequence_[static_cast<std::size_t>(lane.lane)] == lane.sequence;
    std::byte* room =
        level && taken < kernels::kMaxSources ? transport_.reserve(lane.lane, bytes) : nullptr;
    if (room != nullptr) {
      took_[taken] = i;
      targets_[taken++] = room;
    }
  }
  return taken;
}

void Executor::commit_forwards(int taken, std::size_t bytes) noexcept {
  const BoundProgram& program = *operation_.program;
  for (int k = 0; k < taken; ++k) {
    const BoundPass& forward = program.passes[took_[k]];
    const BoundOperand& lane = program.operands[forward.targets];
    std::size_t& done = states_[took_[k]].done;
    transport_.commit(lane.lane, bytes, signature_of(forward, done, bytes));
    done += bytes;
    if (done == forward.bytes) {
      ++out_sequence_[static_cast<std::size_t>(lane.lane)];
    }
  }
}

// How to write what the readers of its forwards will look at. REQUIRES: there is one.
kernels::Store Executor::store_to_readers(const BoundPass& pass, std::size_t bytes) const noexcept {
  const BoundProgram& program = *operation_.program;
  const BoundPass& forward = program.passes[program.forwards[pass.forwards]];
  return transport_.store(program.operands[forward.targets].lane, bytes);
}

Progress Executor::advance_compute(const BoundPass& pass, State& state) noexcept {
  const std::size_t limit = allowed(pass);
  if (limit <= state.done) {
    return Progress::idle;
  }
  std::size_t bytes = limit - state.done;
  fault_.from = -1;
  if (!open_sources(pass, state, bytes)) {
    return fault_.from < 0 ? Progress::idle : Progress::failed;
  }
  const std::uint64_t begin = writer_.on() ? writer_.stamp() : 0;
  const bool is_offer = sources_[0] == nullptr;
  if (!is_offer) {
    bytes = std::min(bytes, send_limits_.slot_bytes);
  } else if (!fetch(pass, state, bytes)) {
    return Progress::idle;
  }
  const BoundProgram& program = *operation_.program;
  const BoundOperand& first = program.operands[pass.targets];
  int taken = 0;
  if (pass.transient) {
    taken = open_forwards(pass, state, bytes);
    const bool all = taken == static_cast<int>(pass.forwards_end - pass.forwards);
    int targets = taken;
    if (!all) {
      targets_[targets++] = own(first) + state.done;
    }
    combine(pass, bytes, targets, all ? store_to_readers(pass, bytes) : kernels::Store::cached);
    commit_forwards(taken, bytes);
  } else if (pass.forwards != pass.forwards_end && shows(first, bytes)) {
    // The sends will show this memory where it is.
    targets_[0] = own(first) + state.done;
    combine(pass, bytes, 1, store_to_readers(pass, bytes));
  } else {
    int targets = 0;
    for (std::uint32_t i = pass.targets; i < pass.targets_end; ++i) {
      targets_[targets++] = own(program.operands[i]) + state.done;
    }
    const std::byte* result = own(first) + state.done;
    combine(pass, bytes, targets, pass.store);
    taken = open_forwards(pass, state, bytes);
    for (int k = 0; k < taken; ++k) {
      const BoundPass& forward = program.passes[took_[k]];
      transport_.fill(program.operands[forward.targets].lane, static_cast<std::byte*>(targets_[k]),
                      result, bytes);
    }
    commit_forwards(taken, bytes);
  }
  state.done += bytes;
  close_sources(pass, state, bytes);
  if (writer_.on()) {
    writer_.stamp();
    record_piece(pass, state, begin, bytes);
    record_forwards(taken, begin, bytes);
  }
  return Progress::advanced;
}

// Whether the sends of this output will be references and not copies.
bool Executor::shows(const BoundOperand& target, std::size_t bytes) const noexcept {
  return output_shared_ && target.place == Place::output &&
         bytes >= send_limits_.least_shared_bytes;
}

}  // namespace unisono::engine
