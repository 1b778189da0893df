// Adds the steps of a program to thread blocks, after the steps for which they wait.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "msccl/program.h"

namespace unisono::msccl {

// A thread block of a rank: for sends to a peer, for receives from a peer, or for copies within the
// GPU.
struct BlockKey {
  int rank = 0;
  int send = -1;
  int receive = -1;

  friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};

// The step and thread block of a rank in which a cell was written.
struct Written {
  int block = -1;
  int step = -1;
};

// The schedule and the program must outlive this object. The program already has its GPUs.
class StepWriter {
 public:
  StepWriter(const Schedule& schedule, MscclProgram& program);

  // `waits`: events of the schedule. The step runs after those of the same rank that have been
  // noted: it can wait for one itself, and needs a nop for each other one.
  Written add(const BlockKey& key, std::span<const std::uint32_t> waits, Step step);
  // Appends a separate step to the block.
  Written append(const BlockKey& key, const Step& step);

  void note(std::uint32_t event, const Written& written);
  bool is_noted(std::uint32_t event) const;

 private:
  int block(const BlockKey& key);
  ThreadBlock& block_of(int rank, int index);
  std::map<int, int> last_steps(int rank, int own, std::span<const std::uint32_t> waits) const;

  const Schedule& schedule_;
  MscclProgram& program_;
  std::vector<std::optional<Written>> written_;  // by event
  std::map<BlockKey, int> blocks_ = {};
};

}  // namespace unisono::msccl
