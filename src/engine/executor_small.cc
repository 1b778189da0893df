// Small programs: their passes one after the other, with no state but the number of the next one.
// This is the path of the short messages, where every nanosecond counts.
#include "engine/executor.h"

namespace unisono::engine {
namespace {

// How often one poll looks for a message before it gives up: the common wait is one line transfer
// between two cores.
constexpr int kLooks = 64;

}  // namespace

Progress Executor::poll_small() noexcept {
  const auto& passes = operation_.program->passes;
  const std::uint32_t begin = next_;
  fault_.from = -1;
  while (next_ < passes.size()) {
    const BoundPass& pass = passes[next_];
    if (pass.bytes != 0 && !step_small(pass)) {
      return fault_.from >= 0 ? Progress::failed
             : next_ != begin ? Progress::advanced
                              : Progress::idle;
    }
    ++next_;
  }
  return Progress::finished;
}

bool Executor::step_small(const BoundPass& pass) noexcept {
  const BoundOperand* operands = operation_.program->operands.data();
  if (pass.send) {
    return transport_.send(operands[pass.targets].lane, own(operands[pass.sources]), pass.bytes,
                           signature_of(pass));
  }
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    const BoundOperand& source = operands[i];
    const void*& address = sources_[i - pass.sources];
    if (source.place != Place::lane) {
      address = own(source);
      continue;
    }
    transport::Incoming message;
    int looks = 0;
    while (!transport_.peek(source.lane, message)) {
      if (++looks == kLooks) {
        return false;
      }
    }
    if (message.signature != signature_of(pass) || message.bytes != pass.bytes) {
      fault_ = {.from = rank_of(source.lane),
                .signature = message.signature,
                .expected = pass.bytes,
                .step = pass.step};
      return false;
    }
    address = message.data;
  }
  int targets = 0;
  for (std::uint32_t i = pass.targets; i < pass.targets_end; ++i) {
    targets_[targets++] = own(operands[i]);
  }
  combine(pass, pass.bytes, targets, kernels::Store::cached);
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    if (operands[i].place == Place::lane) {
      transport_.release(operands[i].lane);
    }
  }
  return true;
}

Executor::Wait Executor::waiting_small() const noexcept {
  const BoundProgram& program = *operation_.program;
  if (next_ >= program.passes.size()) {
    return {};
  }
  const BoundPass& pass = program.passes[next_];
  const BoundOperand* operands = program.operands.data();
  if (pass.send) {
    const int lane = operands[pass.targets].lane;
    return {.rank = lane == ranks_ ? -1 : lane, .step = pass.step};
  }
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    transport::Incoming message;
    if (operands[i].place == Place::lane && !transport_.peek(operands[i].lane, message)) {
      return {.rank = rank_of(operands[i].lane), .step = pass.step};
    }
  }
  return {.rank = -1, .step = pass.step};
}

}  // namespace unisono::engine
