#include "engine/small_run.h"

#include "base/relax.h"

namespace unisono::engine {
namespace {

bool send_pass(Execution& run, const BoundPass& pass) noexcept {
  const BoundOperand* const operands = run.operation.program->operands.data();
  const std::uint64_t begin = run.writer.on() ? run.writer.recent() : 0;
  if (!run.transport.send(operands[pass.targets].lane, run.own(operands[pass.sources]), pass.bytes,
                          run.signature_of(pass))) {
    run.lacks_reader(operands[pass.targets].lane);
    return false;
  }
  if (run.writer.on()) {
    run.record(pass, {.begin = begin, .ticks = run.writer.stamp() - begin});
  }
  return true;
}

bool await_message(Execution& run, const BoundPass& pass, int lane,
                   transport::Incoming& message) noexcept {
  // Pauses between two looks, because a look takes the cache line away from the writer, which may
  // be about to write it.
  for (int looks = 0; !run.transport.peek(lane, message); relax()) {
    if (++looks == run.looks) {
      run.lacks_message(lane);
      return false;
    }
  }
  if (message.signature == run.signature_of(pass) && message.bytes == pass.bytes) {
    return true;
  }
  run.note_fault(pass, lane, message);
  return false;
}

bool receive_pass(Execution& run, const BoundPass& pass) noexcept {
  const BoundOperand* const operands = run.operation.program->operands.data();
  int sources = 0;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    transport::Incoming message;
    if (operands[i].place != OperandPlace::lane) {
      message.data = run.own(operands[i]);
    } else if (!await_message(run, pass, operands[i].lane, message)) {
      return false;
    }
    run.sources[sources++] = message.data;
  }
  // Takes the time only after the message has come: these times are used to compare the clocks of
  // two hosts.
  const std::uint64_t begin = run.writer.on() ? run.writer.stamp() : 0;
  int targets = 0;
  for (std::uint32_t i = pass.targets; i < pass.targets_end; ++i) {
    run.targets[targets++] = run.own(operands[i]);
  }
  run.combine(pass, pass.bytes, targets, kernels::Store::cached);
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    if (operands[i].place == OperandPlace::lane) {
      run.transport.release(operands[i].lane);
    }
  }
  if (run.writer.on()) {
    run.record(pass, {.begin = begin, .ticks = run.writer.stamp() - begin});
  }
  return true;
}

}  // namespace

Progress poll_small(Execution& run) noexcept {
  const BoundProgram& program = *run.operation.program;
  const BoundPass* const passes = program.passes.data();
  const auto end = static_cast<std::uint32_t>(program.passes.size());
  const std::uint32_t begin = run.next;
  run.fault.from = -1;
  run.lacked = Execution::kNothing;
  for (; run.next < end; ++run.next) {
    const BoundPass& pass = passes[run.next];
    if (pass.bytes == 0) {
      continue;
    }
    const bool done = pass.send ? send_pass(run, pass) : receive_pass(run, pass);
    if (!done) {
      return run.fault.from >= 0 ? Progress::failed
             : run.next != begin ? Progress::advanced
                                 : Progress::idle;
    }
  }
  return run.flushed() ? Progress::finished : Progress::idle;
}

std::vector<Wait> small_waits(const Execution& run) {
  const BoundProgram& program = *run.operation.program;
  if (run.next >= program.passes.size()) {
    return {};
  }
  const BoundPass& pass = program.passes[run.next];
  const BoundOperand* operands = program.operands.data();
  if (pass.send) {
    return {{.rank = run.transport.slowest_reader(operands[pass.targets].lane), .step = pass.step}};
  }
  std::vector<Wait> missing;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    transport::Incoming message;
    if (operands[i].place == OperandPlace::lane && !run.transport.peek(operands[i].lane, message)) {
      missing.push_back({.rank = run.rank_of(operands[i].lane), .step = pass.step});
    }
  }
  return missing;
}

}  // namespace unisono::engine
