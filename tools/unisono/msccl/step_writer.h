// Puts the steps of a program into thread blocks, behind the steps that they wait for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "msccl/program.h"

namespace unisono::msccl {

// A thread block of a rank: the one that sends to a peer, the one that receives from a peer, or the
// one for what stays within the GPU.
struct BlockKey {
  int rank = 0;
  int send = -1;
  int receive = -1;

  friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};

// The step and the thread block, of its rank, in which something was written.
struct Written {
  int block = -1;
  int step = -1;
};

// Schedule and program must live as long. The program has its GPUs.
class StepWriter {
 public:
  StepWriter(const Schedule& schedule, MscclProgram& program);

  // `waits`: events of the schedule. Those of the same rank that have been noted come before: the
  // step can wait for one itself, others need a nop each.
  Written add(const BlockKey& key, std::span<const std::uint32_t> waits, Step step);
  // Appends to the block, as a step of its own.
  Written append(const BlockKey& key, const Step& step);

  void note(std::uint32_t event, const Written& written);
  bool is_noted(std::uint32_t event) const;

 private:
  int block(const BlockKey& key);
  ThreadBlock& block_of(int rank, int index);
  std::map<int, int> last_steps(int rank, int own, std::span<const std::uint32_t> waits) const;

  const Schedule& schedule_;
  MscclProgram& program_;
  std::vector<std::optional<Written>> written_;  // of each event
  std::map<BlockKey, int> blocks_ = {};
};

}  // namespace unisono::msccl
