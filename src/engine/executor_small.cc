// Small programs: their passes one after the other, with no state but the number of the next one.
// This is the path of the short messages, where every nanosecond counts.
#include "base/relax.h"
#include "engine/executor.h"

namespace unisono::engine {

Progress Executor::poll_small() noexcept {
  const BoundProgram& program = *operation_.program;
  const BoundPass* const passes = program.passes.data();
  const auto end = static_cast<std::uint32_t>(program.passes.size());
  const std::uint32_t begin = next_;
  fault_.from = -1;
  lacked_ = kNothing;
  for (; next_ < end; ++next_) {
    const BoundPass& pass = passes[next_];
    if (pass.bytes == 0) {
      continue;
    }
    const bool done = pass.send ? send_small(pass) : receive_small(pass);
    if (!done) {
      return fault_.from >= 0 ? Progress::failed
             : next_ != begin ? Progress::advanced
                              : Progress::idle;
    }
  }
  return flushed() ? Progress::finished : Progress::idle;
}

bool Executor::send_small(const BoundPass& pass) noexcept {
  const BoundOperand* const operands = operation_.program->operands.data();
  const std::uint64_t begin = writer_.on() ? writer_.recent() : 0;
  if (!transport_.send(operands[pass.targets].lane, own(operands[pass.sources]), pass.bytes,
                       signature_of(pass))) {
    lacks_reader(operands[pass.targets].lane);
    return false;
  }
  if (writer_.on()) {
    record_whole(pass, begin);
  }
  return true;
}

bool Executor::await_small(const BoundPass& pass, int lane, transport::Incoming& message) noexcept {
  // Between two looks it relaxes: a look takes the cache line away from the writer, who may be
  // about to write it.
  for (int looks = 0; !transport_.peek(lane, message); relax()) {
    if (++looks == looks_) {
      lacks_message(lane);
      return false;
    }
  }
  if (message.signature == signature_of(pass) && message.bytes == pass.bytes) {
    return true;
  }
  fault_ = {.from = rank_of(lane),
            .signature = message.signature,
            .expected = pass.is_nothing ? 0 : pass.bytes,
            .step = pass.step};
  return false;
}

bool Executor::receive_small(const BoundPass& pass) noexcept {
  const BoundOperand* const operands = operation_.program->operands.data();
  int sources = 0;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    transport::Incoming message;
    if (operands[i].place != Place::lane) {
      message.data = own(operands[i]);
    } else if (!await_small(pass, operands[i].lane, message)) {
      return false;
    }
    sources_[sources++] = message.data;
  }
  // Not before it has come: by such times the clocks of two hosts are compared.
  const std::uint64_t begin = writer_.on() ? writer_.stamp() : 0;
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
  if (writer_.on()) {
    record_whole(pass, begin);
  }
  return true;
}

}  // namespace unisono::engine
