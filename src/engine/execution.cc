#include "engine/execution.h"

#include <cstring>

#include "engine/coded_lengths.h"

namespace unisono::engine {

namespace recording = trace::recording;
using recording::EventKind;

void Execution::combine(const BoundPass& pass, std::size_t bytes, int count,
                        kernels::Store store) noexcept {
  const auto source_count = static_cast<int>(pass.sources_end - pass.sources);
  const Reducer& reducer = operation.reducer;
  if (source_count == 1) {
    for (int i = 0; i < count; ++i) {
      if (targets[i] != sources[0]) {
        kernels::copy(targets[i], sources[0], bytes, store);
      }
    }
  } else if (reducer.scaled_sum != nullptr) {
    reducer.scaled_sum(targets, count, sources, source_count, bytes / operation.program->element,
                       store, {.factor = reducer.scale, .sources = pass.single_sources});
  } else if (reducer.user == nullptr) {
    reducer.kernel(targets, count, sources, source_count, bytes / operation.program->element,
                   store);
  } else {
    // Uses a bounce buffer, because a target may also be one of the later sources.
    const auto source = [&](int i) { return sources[reducer.reversed ? source_count - 1 - i : i]; };
    std::memcpy(bounce.data(), source(0), bytes);
    for (int i = 1; i < source_count; ++i) {
      reducer.user(bounce.data(), source(i), bytes / operation.program->element, reducer.context);
    }
    for (int i = 0; i < count; ++i) {
      std::memcpy(targets[i], bounce.data(), bytes);
    }
  }
  if (store == kernels::Store::streaming) {
    kernels::fence_streaming();
  }
}

void Execution::record(const BoundPass& pass, const BusyTicks& busy) noexcept {
  const BoundOperand* const operands = operation.program->operands.data();
  const std::size_t bytes = pass.is_nothing ? 0 : message_bytes(pass, pass.bytes);
  if (pass.send) {
    const BoundOperand& lane = operands[pass.targets];
    const bool to_all = lane.lane >= ranks;
    writer.pass(EventKind::send, to_all, to_all ? recording::kEveryPeer : lane.lane, lane.sequence,
                pass.step, bytes, busy.begin, busy.ticks);
    return;
  }
  const EventKind kind =
      pass.sources_end - pass.sources == 1 ? EventKind::receive : EventKind::reduce;
  bool came = false;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    if (operands[i].place == OperandPlace::lane) {
      writer.pass(kind, operands[i].lane >= ranks, rank_of(operands[i].lane), operands[i].sequence,
                  pass.step, bytes, busy.begin, came ? 0 : busy.ticks);
      came = true;
    }
  }
  if (!came) {
    writer.pass(kind == EventKind::reduce ? kind : EventKind::copy, false, recording::kEveryPeer, 0,
                pass.step, bytes, busy.begin, busy.ticks);
  }
}

}  // namespace unisono::engine
