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
      known_(table.blocks(), Clock(counted.size(), -1)),
      told_(known_),
      stretches_(table.blocks(), 1),
      messages_(counters.size()) {
  for (std::size_t i = 0; i < counted.size(); ++i) {
    index_[counted[i]] = i;
    known_[counted[i]][i] = 0;
  }
  for (std::size_t counter = 0; counter < counters.size(); ++counter) {
    from_beginning_.push_back(counters.initial(counter));
  }
}

void Clocks::take(Clock& into, const Clock& from) {
  std::transform(into.begin(), into.end(), from.begin(), into.begin(),
                 [](int one, int other) { return std::max(one, other); });
}

// All that the block knows, and that its own stretch is over.
Clocks::Clock Clocks::own(std::size_t block) const {
  Clock clock = known_[block];
  take(clock, told_[block]);
  if (const auto found = index_.find(block); found != index_.end()) {
    clock[found->second] = stretches_[block];
  }
  return clock;
}

void Clocks::join(const std::vector<std::size_t>& blocks) {
  Clock all = own(blocks.front());
  for (const std::size_t block : blocks) {
    take(all, own(block));
  }
  for (const std::size_t block : blocks) {
    known_[block] = all;
    ++stretches_[block];
  }
}

void Clocks::run(std::size_t index) {
  const PlanOperation& operation = table_.operation(index);
  const std::size_t block = table_.block_number(index);
  const Effect effect = traits_of(operation.type).effect;
  if (effect == Effect::joins) {
    join({block});
    return;
  }
  if (effect != Effect::raises && effect != Effect::lowers) {
    return;
  }
  for (const std::size_t counter : counters_.of(table_.id(index).gpu, operation)) {
    if (counter == CounterTable::none()) {
      continue;
    }
    Clock clock;
    if (effect == Effect::raises) {
      clock = known_[block];
    } else if (from_beginning_[counter] > 0) {
      --from_beginning_[counter];
      continue;
    } else {
      clock = std::move(messages_[counter].front());
      messages_[counter].pop_front();
    }
    if (is_relaxed(operation.type)) {  // says that it has begun, and orders no data
      std::transform(clock.begin(), clock.end(), clock.begin(),
                     [](int known) { return std::min(known, 0); });
    }
    if (effect == Effect::raises) {
      messages_[counter].push_back(std::move(clock));
    } else {
      take(told_[block], clock);
    }
  }
}

bool Clocks::knows(std::size_t block, std::size_t of, int stretch) const {
  return known_[block][index_.at(of)] >= stretch;
}
bool Clocks::knows_at_end(std::size_t block, std::size_t of, int stretch) const {
  const std::size_t at = index_.at(of);
  return block == of || std::max(known_[block][at], told_[block][at]) >= stretch;
}

}  // namespace unisono::mscclpp
