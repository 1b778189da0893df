#include "mscclpp/blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace unisono::mscclpp {
namespace {

bool any_overlap(const std::vector<PlanPlace>& ones, const std::vector<PlanPlace>& others) {
  return std::any_of(ones.begin(), ones.end(), [&](const PlanPlace& one) {
    return std::any_of(others.begin(), others.end(),
                       [&](const PlanPlace& other) { return overlap(one, other); });
  });
}

const std::vector<int>& counters_in(const PlanOperation& operation) {
  return operation.semaphores.empty() ? operation.channels : operation.semaphores;
}

}  // namespace

bool ThreadBlockWriter::meets_open_data(const PlanOperation& operation) const {
  return std::any_of(open_.begin(), open_.end(), [&](const PlanOperation& before) {
    return any_overlap(operation.targets, before.targets) ||
           any_overlap(operation.targets, before.sources) ||
           any_overlap(operation.sources, before.targets);
  });
}

bool ThreadBlockWriter::is_of_other_thread(OperationType type, int counter,
                                           std::size_t thread) const {
  const auto found = threads_.find({type, counter});
  return found != threads_.end() && found->second != thread;
}

bool ThreadBlockWriter::needs_nop(const PlanOperation& operation) const {
  const std::vector<int>& counters = counters_in(operation);
  for (std::size_t thread = 0; thread < counters.size(); ++thread) {
    if (is_of_other_thread(operation.type, counters[thread], thread)) {
      return true;
    }
  }
  switch (traits_of(operation.type).effect) {
    case Effect::raises:
      return has_waited_ || !open_.empty();
    case Effect::moves:
    case Effect::adds:
      return has_waited_ || meets_open_data(operation);
    case Effect::joins:
    case Effect::lowers:
      break;
  }
  return false;
}

void ThreadBlockWriter::append(PlanOperation operation) {
  if (needs_nop(operation)) {
    operations_.push_back({.type = OperationType::nop});
    open_.clear();
    threads_.clear();
    has_waited_ = false;
  }
  has_waited_ = has_waited_ || traits_of(operation.type).effect == Effect::lowers;
  if (has_data(operation.type)) {
    open_.push_back(operation);
  }
  const std::vector<int>& counters = counters_in(operation);
  for (std::size_t thread = 0; thread < counters.size(); ++thread) {
    threads_[{operation.type, counters[thread]}] = thread;
  }
  operations_.push_back(std::move(operation));
}

// Operations of the same kind are joined, as far as one operation can hold them: each needs a
// thread, so no counter may occur twice.
void ThreadBlockWriter::append_counter(OperationType type, int counter) {
  if (!operations_.empty() && operations_.back().type == type) {
    std::vector<int>& others = operations_.back().semaphores;
    if (others.size() < kMostSemaphoresOfOperation &&
        std::find(others.begin(), others.end(), counter) == others.end() &&
        !is_of_other_thread(type, counter, others.size())) {
      threads_[{type, counter}] = others.size();
      others.push_back(counter);
      return;
    }
  }
  append({.type = type, .semaphores = {counter}});
}
void ThreadBlockWriter::acquire(int semaphore) {
  append_counter(OperationType::acquire, semaphore);
}
void ThreadBlockWriter::release(int semaphore) {
  append_counter(OperationType::release, semaphore);
}
void ThreadBlockWriter::signal(int channel) {
  append({.type = OperationType::signal, .channels = {channel}});
}
void ThreadBlockWriter::wait(int channel) {
  append({.type = OperationType::wait, .channels = {channel}});
}

std::vector<ThreadBlock> ThreadBlockWriter::finish(std::vector<int>& semaphores) && {
  // Both ends of a piece need a nop and the semaphore.
  constexpr std::size_t kMost = kMostOperationsOfBlock - 4;
  std::vector<ThreadBlock> pieces;
  std::size_t first = 0;
  while (first < operations_.size()) {
    const std::size_t left = operations_.size() - first;
    const bool is_first = pieces.empty();
    const std::size_t last =
        first + ((left <= kMostOperationsOfBlock - (is_first ? 0 : 2)) ? left : kMost);
    ThreadBlock piece;
    if (!is_first) {
      piece.push_back({.type = OperationType::acquire,
                       .semaphores = {static_cast<int>(semaphores.size()) - 1}});
      piece.push_back({.type = OperationType::nop});
    }
    piece.insert(piece.end(), operations_.begin() + static_cast<std::ptrdiff_t>(first),
                 operations_.begin() + static_cast<std::ptrdiff_t>(last));
    if (last < operations_.size()) {
      semaphores.push_back(0);
      piece.push_back({.type = OperationType::nop});
      piece.push_back({.type = OperationType::release,
                       .semaphores = {static_cast<int>(semaphores.size()) - 1}});
    }
    pieces.push_back(std::move(piece));
    first = last;
  }
  return pieces;
}

}  // namespace unisono::mscclpp
