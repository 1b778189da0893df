// Whom an operation waits for, for the messages of timeouts and for those who look from outside.
#include "engine/executor.h"

namespace unisono::engine {

std::vector<Executor::Wait> Executor::waits() const {
  if (operation_.program == nullptr) {
    return {};  // the world ended before the first operation began
  }
  const BoundProgram& program = *operation_.program;
  if (program.small) {
    return waits_small();
  }
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
        full.push_back({.rank = transport_.slowest_reader(lane.lane), .step = pass.step});
      }
      continue;
    }
    for (std::uint32_t k = pass.sources; k < pass.sources_end; ++k) {
      const BoundOperand& source = program.operands[k];
      if (source.place == Place::lane && is_missing(source)) {
        missing.push_back({.rank = rank_of(source.lane), .step = pass.step});
      }
    }
  }
  missing.insert(missing.end(), full.begin(), full.end());
  return missing;
}

bool Executor::is_missing(const BoundOperand& source) const noexcept {
  const Arriving& arriving = in_[static_cast<std::size_t>(source.lane)];
  transport::Incoming message;
  return arriving.sequence == source.sequence && !arriving.open &&
         !transport_.peek(source.lane, message);
}

std::vector<Executor::Wait> Executor::waits_small() const {
  const BoundProgram& program = *operation_.program;
  if (next_ >= program.passes.size()) {
    return {};
  }
  const BoundPass& pass = program.passes[next_];
  const BoundOperand* operands = program.operands.data();
  if (pass.send) {
    return {{.rank = transport_.slowest_reader(operands[pass.targets].lane), .step = pass.step}};
  }
  std::vector<Wait> missing;
  for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
    transport::Incoming message;
    if (operands[i].place == Place::lane && !transport_.peek(operands[i].lane, message)) {
      missing.push_back({.rank = rank_of(operands[i].lane), .step = pass.step});
    }
  }
  return missing;
}

}  // namespace unisono::engine
