#include <map>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

// Contributions in each written cell, one bit per rank.
using HeldSums = std::map<std::size_t, std::uint64_t>;

void find_sum(GraphDraft& draft, int number, HeldSums& held) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - draft.order.size());
  GraphPass& pass = draft.node(number).pass;
  std::uint64_t sum = 0;
  bool whole_before = false;
  for (const GraphCell& source : pass.sources) {
    const bool is_input = source.place == engine::OperandPlace::input;
    const auto at = held.find(draft.key(source));
    const std::uint64_t has =
        is_input || at == held.end() ? std::uint64_t{1} << source.rank : at->second;
    whole_before = whole_before || (has == all && !is_input);
    sum |= has;
  }
  pass.finish = sum == all && !whole_before;
  const auto keep = [&](const GraphPass& written) {
    for (const GraphCell& target : written.targets) {
      held[draft.key(target)] = sum;
    }
  };
  keep(pass);
  for (const GraphMessage& message : draft.messages) {
    if (message.push && message.writer == number) {
      keep(draft.node(message.reader).pass);
    }
  }
}

}  // namespace

void find_sums(GraphDraft& draft) {
  HeldSums held;
  visit_in_order(draft, [&](int number) { find_sum(draft, number, held); });
}

}  // namespace unisono::device
