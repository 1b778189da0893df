#include "msccl/step_writer.h"

#include <algorithm>
#include <iterator>

namespace unisono::msccl {

StepWriter::StepWriter(const Schedule& schedule, MscclProgram& program)
    : schedule_(schedule), program_(program), written_(2 * schedule.moves.size()) {}

Written StepWriter::add(const BlockKey& key, std::span<const std::uint32_t> waits, Step step) {
  const int own = block(key);
  const std::map<int, int> last = last_steps(key.rank, own, waits);
  std::vector<Step>& steps = block_of(key.rank, own).steps;
  for (auto on = last.begin(); on != last.end(); ++on) {
    block_of(key.rank, on->first).steps[static_cast<std::size_t>(on->second)].tells = true;
    if (std::next(on) == last.end()) {
      step.depends_on_block = on->first;
      step.depends_on_step = on->second;
    } else {
      steps.push_back({.type = StepType::nop,
                       .chunks = 0,
                       .depends_on_block = on->first,
                       .depends_on_step = on->second,
                       .schedule_step = step.schedule_step});
    }
  }
  return append(key, step);
}

Written StepWriter::append(const BlockKey& key, const Step& step) {
  const int own = block(key);
  std::vector<Step>& steps = block_of(key.rank, own).steps;
  steps.push_back(step);
  return {.block = own, .step = static_cast<int>(steps.size()) - 1};
}

void StepWriter::note(std::uint32_t event, const Written& written) {
  written_[event] = written;
}

bool StepWriter::is_noted(std::uint32_t event) const {
  return written_[event].has_value();
}

// Returns the result of `waits`: the last step of each other block of the rank.
std::map<int, int> StepWriter::last_steps(int rank, int own,
                                          std::span<const std::uint32_t> waits) const {
  std::map<int, int> last;
  for (const std::uint32_t event : waits) {
    const Move& move = schedule_.moves[event / 2];
    const int owner = event % 2 == 0 ? move.from : move.to;
    const std::optional<Written>& on = written_[event];
    if (on && owner == rank && on->block != own) {
      int& at = last.emplace(on->block, on->step).first->second;
      at = std::max(at, on->step);
    }
  }
  return last;
}

int StepWriter::block(const BlockKey& key) {
  std::vector<ThreadBlock>& blocks = program_.gpus[static_cast<std::size_t>(key.rank)].blocks;
  const auto [found, is_new] = blocks_.try_emplace(key, static_cast<int>(blocks.size()));
  if (is_new) {
    blocks.push_back({.send = key.send, .receive = key.receive});
  }
  return found->second;
}

ThreadBlock& StepWriter::block_of(int rank, int index) {
  return program_.gpus[static_cast<std::size_t>(rank)].blocks[static_cast<std::size_t>(index)];
}

}  // namespace unisono::msccl
