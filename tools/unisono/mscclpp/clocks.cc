#include "mscclpp/clocks.h"

#include <algorithm>
#include <utility>

namespace unisono::mscclpp {
namespace {

bool is_relaxed(OperationType type) {
  return type == OperationType::relaxed_signal || type == OperationType::relaxed_wait;
}

}  // namespace

Clocks::Clocks(const OperationTable& table, const CounterTable& counters,
               const std::vector<std::size_t>& counted)
    : table_(table),
      counters_(counters),
      index_(table.blocks(), OperationTable::none()),
      known_(table.blocks()),
      told_(table.blocks()),
      stretches_(table.blocks(), 1),
      stretch_of_(table.size(), 0),
      signals_(counters.size()) {
  for (std::size_t i = 0; i < counted.size(); ++i) {
    std::vector<int> begun(counted.size(), -1);
    begun[i] = 0;
    index_[counted[i]] = i;
    known_[counted[i]] = std::make_shared<const std::vector<int>>(std::move(begun));
  }
  for (std::size_t counter = 0; counter < counters.size(); ++counter) {
    signals_[counter].from_beginning = counters.initial(counter);
  }
}

Clocks::Clock Clocks::later(const Clock& one, const Clock& other) {
  if (other == nullptr || one == other) {
    return one;
  }
  if (one == nullptr) {
    return other;
  }
  std::vector<int> all(one->size());
  std::transform(one->begin(), one->end(), other->begin(), all.begin(),
                 [](int first, int second) { return std::max(first, second); });
  return std::make_shared<const std::vector<int>>(std::move(all));
}

// Returns the part of a clock that a relaxed operation passes on: the blocks that have begun. It
// orders no data.
Clocks::Clock Clocks::begun(const Clock& clock) {
  if (clock == nullptr) {
    return clock;
  }
  std::vector<int> all(clock->size());
  std::transform(clock->begin(), clock->end(), all.begin(),
                 [](int known) { return std::min(known, 0); });
  return std::make_shared<const std::vector<int>>(std::move(all));
}

int Clocks::known(const Clock& clock, std::size_t of) const {
  return clock == nullptr ? -1 : (*clock)[index_[of]];
}

// Returns the knowledge of the block, including that its own stretch is over.
Clocks::Clock Clocks::own(std::size_t block) const {
  Clock clock = later(known_[block], told_[block]);
  if (index_[block] == OperationTable::none()) {
    return clock;
  }
  std::vector<int> all = *clock;
  all[index_[block]] = stretches_[block];
  return std::make_shared<const std::vector<int>>(std::move(all));
}

void Clocks::join(const std::vector<std::size_t>& blocks) {
  Clock all;
  for (const std::size_t block : blocks) {
    all = later(all, own(block));
  }
  for (const std::size_t block : blocks) {
    known_[block] = all;
    told_[block] = nullptr;
    ++stretches_[block];
  }
}

void Clocks::run(std::size_t operation) {
  const std::size_t block = table_.block_number(operation);
  stretch_of_[operation] = stretches_[block];
  const OperationType type = table_.type(operation);
  switch (traits_of(type).effect) {
    case Effect::joins:
      known_[block] = own(block);
      told_[block] = nullptr;
      ++stretches_[block];
      break;
    case Effect::raises:
      for (const std::size_t counter : counters_.of(operation)) {
        raise(block, counter, is_relaxed(type));
      }
      break;
    case Effect::lowers:
      for (const std::size_t counter : counters_.of(operation)) {
        lower(block, counter, is_relaxed(type));
      }
      break;
    case Effect::moves:
    case Effect::adds:
      break;
  }
}

void Clocks::raise(std::size_t block, std::size_t counter, bool is_relaxed) {
  if (counter != CounterTable::none()) {
    signals_[counter].clocks.push_back(is_relaxed ? begun(known_[block]) : known_[block]);
  }
}

void Clocks::lower(std::size_t block, std::size_t counter, bool is_relaxed) {
  Signals& signals = signals_[counter];
  if (signals.from_beginning > 0) {
    --signals.from_beginning;
    return;
  }
  const Clock clock = std::move(signals.clocks[signals.taken++]);
  told_[block] = later(told_[block], is_relaxed ? begun(clock) : clock);
}

bool Clocks::is_over(std::size_t operation, std::size_t next) const {
  return known(known_[table_.block_number(next)], table_.block_number(operation)) >=
         stretch_of_[operation];
}
bool Clocks::is_same_stretch(std::size_t operation, std::size_t next) const {
  const std::size_t block = table_.block_number(next);
  return table_.block_number(operation) == block && stretch_of_[operation] == stretches_[block];
}
bool Clocks::has_begun(std::size_t counted, std::size_t block) const {
  return known(known_[block], counted) >= 0;
}
bool Clocks::is_over_at_end(std::size_t operation, std::size_t block) const {
  const std::size_t of = table_.block_number(operation);
  return block == of ||
         std::max(known(known_[block], of), known(told_[block], of)) >= stretch_of_[operation];
}

}  // namespace unisono::mscclpp
