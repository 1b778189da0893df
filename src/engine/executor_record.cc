// What an executor records: each pass when it is done, a message for a message.
#include "engine/executor.h"

namespace unisono::engine {

namespace recording = trace::recording;
using recording::Kind;

void Executor::record_whole(const BoundPass& pass, std::uint64_t begin) noexcept {
  emit(pass, {.begin = begin, .ticks = writer_.stamp() - begin});
}

// `bytes` have just been added to what is done. What rides along is busy at no time of its own.
void Executor::record_piece(const BoundPass& pass, const State& state, std::uint64_t begin,
                            std::size_t bytes, bool riding) noexcept {
  Busy& busy = busy_[static_cast<std::size_t>(&state - states_.data())];
  if (state.done == bytes) {
    busy = {.begin = begin};
  }
  busy.ticks += riding ? 0 : writer_.recent() - begin;
  if (state.done == pass.bytes) {
    emit(pass, busy);
  }
}

void Executor::record_forwards(int taken, std::uint64_t begin, std::size_t bytes) noexcept {
  for (int k = 0; k < taken; ++k) {
    record_piece(operation_.program->passes[took_[k]], states_[took_[k]], begin, bytes, true);
  }
}

void Executor::emit(const BoundPass& pass, const Busy& busy) noexcept {
  const BoundOperand* const operands = operation_.program->operands.data();
  const std::size_t bytes = pass.is_nothing ? 0 : pass.bytes;
  if (pass.send) {
    const BoundOperand& lane = operands[pass.targets];
    const bool to_all = lane.lane >= ranks_;
    writer_.pass(Kind::send, to_all, to_all ? recording::kEveryPeer : lane.lane, lane.sequence,
                 pass.step, bytes, busy.begin, busy.ticks);
    return;
  }
  const Kind kind = pass.sources_end - pass.sources == 1 ? Kind::receive : Kind::reduce;
  bool came = false;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    if (operands[i].place == Place::lane) {
      writer_.pass(kind, operands[i].lane >= ranks_, rank_of(operands[i].lane),
                   operands[i].sequence, pass.step, bytes, busy.begin, came ? 0 : busy.ticks);
      came = true;
    }
  }
  if (!came) {
    writer_.pass(kind == Kind::reduce ? kind : Kind::copy, false, recording::kEveryPeer, 0,
                 pass.step, bytes, busy.begin, busy.ticks);
  }
}

}  // namespace unisono::engine
