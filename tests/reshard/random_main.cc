// Random reshards against an oracle: it finds the owner of every element from the definition of a
// placement, plays the plan's moves element by element, and counts the fewest bytes itself.
//
//   random_reshard [--count N] [--seed S]
//
// Seed S alone replays one case.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "draw.h"
#include "unisono/error.hpp"

namespace unisono::parallel::testing {
namespace {

// Returns the positions that have each element, in row-major order of the elements.
std::vector<std::vector<std::size_t>> owners(const Drawn& side, const Index& shape) {
  std::size_t count = 1;
  for (const std::size_t size : shape) {
    count *= size;
  }
  std::vector<std::vector<std::size_t>> all(count);
  for (std::size_t element = 0; element < count; ++element) {
    for (std::size_t position = 0; position < side.positions(); ++position) {
      std::size_t rest = element;
      bool has = true;
      for (std::size_t dim = shape.size(); dim-- > 0;) {
        has = has && owned(side, position, dim, shape[dim], rest % shape[dim]).has_value();
        rest /= shape[dim];
      }
      if (has) {
        all[element].push_back(position);
      }
    }
  }
  return all;
}

std::vector<std::size_t> elements_in(const ElementRanges& ranges, const Index& shape) {
  std::vector<std::size_t> elements = {0};
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<std::size_t> next;
    for (const std::size_t element : elements) {
      for (const Range& range : ranges[dim]) {
        for (std::size_t i = 0; i < range.count; ++i) {
          next.push_back(element * shape[dim] + range.first + i);
        }
      }
    }
    elements = std::move(next);
  }
  return elements;
}

struct Bytes {
  std::size_t far = 0;
  std::size_t sent = 0;
};

// Returns the fewest bytes to move one element, in elements.
Bytes fewest(const Case& one, const std::vector<std::size_t>& sources,
             const std::vector<std::size_t>& targets) {
  const auto host = [&](int rank) { return one.hosts[static_cast<std::size_t>(rank)]; };
  std::set<int> need;
  std::set<int> need_hosts;
  std::map<std::size_t, std::set<int>> have;
  std::set<int> all;
  for (const std::size_t position : targets) {
    need.insert(one.to.ranks[position]);
    need_hosts.insert(host(one.to.ranks[position]));
  }
  all = need;
  for (const std::size_t position : sources) {
    have[summand_of(one.from, position)].insert(one.from.ranks[position]);
    all.insert(one.from.ranks[position]);
  }
  const auto on = [&](const std::set<int>& ranks, int where) {
    return std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return host(rank) == where; });
  };
  if (need.empty()) {
    return {};
  }
  Bytes best{.far = ~std::size_t{0}};
  if (have.size() == 1) {
    best = {};
    const std::set<int>& ranks = have.begin()->second;
    for (const int rank : need) {
      best.sent += ranks.contains(rank) ? 0U : 1U;
    }
    for (const int where : need_hosts) {
      best.far += on(ranks, where) ? 0U : 1U;
    }
    return best;
  }
  for (const int adder : all) {
    Bytes cost;
    for (const auto& [summand, ranks] : have) {
      cost.sent += ranks.contains(adder) ? 0U : 1U;
      cost.far += on(ranks, host(adder)) ? 0U : 1U;
    }
    cost.sent += need.size() - need.count(adder);
    cost.far += need_hosts.size() - need_hosts.count(host(adder));
    if (cost.far < best.far || (cost.far == best.far && cost.sent < best.sent)) {
      best = cost;
    }
  }
  return best;
}

// Returns the value of a summand, and of the sum.
double value_of(std::size_t element, std::size_t summand) {
  return static_cast<double>(element + 1) * static_cast<double>(summand + 1);
}

// Plays the moves. Returns the mistakes.
std::string play(const Case& one, const ReshardPlan& plan,
                 const std::vector<std::vector<std::size_t>>& sources,
                 const std::vector<std::vector<std::size_t>>& targets) {
  const std::size_t world = one.hosts.size();
  std::vector<std::map<std::size_t, double>> arrived(world);
  std::vector<std::map<std::size_t, std::pair<double, std::size_t>>> sums(world);
  std::vector<std::map<std::size_t, int>> writes(world);
  std::size_t summands = 1;
  for (std::size_t position = 0; position < one.from.positions(); ++position) {
    summands = std::max(summands, summand_of(one.from, position) + 1);
  }
  Bytes bytes;
  for (const ReshardMove& move : plan.moves) {
    const auto to = static_cast<std::size_t>(move.to);
    const auto from = static_cast<std::size_t>(move.from);
    for (const std::size_t element : elements_in(move.elements, one.shape)) {
      double value = 0;
      if (move.hop == 0) {
        const auto& holders = sources[element];
        const auto holder = std::find_if(holders.begin(), holders.end(), [&](std::size_t position) {
          return one.from.ranks[position] == move.from;
        });
        if (holder == holders.end()) {
          return "reads an element that the source does not have";
        }
        value = value_of(element, summand_of(one.from, *holder));
      } else if (arrived[from].contains(element)) {
        value = arrived[from][element];
      } else if (sums[from].contains(element) && sums[from][element].second == summands) {
        value = sums[from][element].first;
      } else {
        return "reads an element that has not arrived";
      }
      if (move.summand) {
        sums[to][element].first += value;
        ++sums[to][element].second;
      } else {
        arrived[to][element] = value;
        ++writes[to][element];
      }
      bytes.sent += from == to ? 0U : 1U;
      bytes.far += one.hosts[from] == one.hosts[to] ? 0U : 1U;
    }
  }
  Bytes least;
  std::size_t written = 0;
  for (std::size_t element = 0; element < targets.size(); ++element) {
    const double whole = value_of(element, 0) * static_cast<double>(summands * (summands + 1)) / 2;
    for (const std::size_t position : targets[element]) {
      const auto rank = static_cast<std::size_t>(one.to.ranks[position]);
      if (writes[rank][element] != 1 || arrived[rank][element] != whole) {
        return "element " + std::to_string(element) + " of rank " + std::to_string(rank) +
               " is written " + std::to_string(writes[rank][element]) + " times";
      }
      ++written;
    }
    const Bytes here = fewest(one, sources[element], targets[element]);
    least.sent += here.sent;
    least.far += here.far;
  }
  std::size_t all = 0;
  for (const auto& rank : writes) {
    for (const auto& [element, times] : rank) {
      all += static_cast<std::size_t>(times);
    }
  }
  if (all != written) {
    return "writes elements that nobody needs";
  }
  if (bytes.sent != least.sent || bytes.far != least.far) {
    return "sends " + std::to_string(bytes.sent) + " elements, " + std::to_string(bytes.far) +
           " between hosts, and " + std::to_string(least.sent) + " and " +
           std::to_string(least.far) + " are enough";
  }
  if (bytes.sent * 4 != plan.bytes_sent() || bytes.far * 4 != plan.bytes_between_hosts()) {
    return "the plan counts other bytes than it moves";
  }
  return {};
}

// Compares elements_at() with the definition.
std::string compare(const Drawn& side, const Index& shape) {
  const MeshLayout layout = side.layout();
  for (std::size_t position = 0; position < side.positions(); ++position) {
    const ElementRanges ranges = elements_at(layout, shape, static_cast<int>(position));
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      std::vector<std::size_t> listed;
      for (const Range& range : ranges[dim]) {
        for (std::size_t i = 0; i < range.count; ++i) {
          listed.push_back(range.first + i);
        }
      }
      std::size_t next = 0;
      for (std::size_t i = 0; i < shape[dim]; ++i) {
        const auto at = owned(side, position, dim, shape[dim], i);
        if (at && (*at >= listed.size() || listed[*at] != i)) {
          return "position " + std::to_string(position) + " has other elements of dimension " +
                 std::to_string(dim);
        }
        next += at ? 1U : 0U;
      }
      if (next != listed.size()) {
        return "position " + std::to_string(position) + " has more elements of dimension " +
               std::to_string(dim);
      }
    }
  }
  return {};
}

std::string run(const Case& one) {
  for (const Drawn* side : {&one.from, &one.to}) {
    if (std::string wrong = compare(*side, one.shape); !wrong.empty()) {
      return wrong;
    }
    const std::string text = side->layout().text();
    if (MeshLayout::parse(text).text() != text) {
      return "the text \"" + text + "\" is read as another layout";
    }
  }
  const ReshardPlan plan = plan_reshard({{.name = "w",
                                          .dtype = Dtype::f32,
                                          .shape = one.shape,
                                          .from = one.from.layout(),
                                          .to = one.to.layout()}},
                                        one.hosts);
  if (std::string wrong = play(one, plan, owners(one.from, one.shape), owners(one.to, one.shape));
      !wrong.empty()) {
    return wrong;
  }
  const auto findings = verify_reshard(plan);
  if (!findings.empty()) {
    return "verify_reshard() refuses it: " + findings.front();
  }
  const ReshardBound bound = reshard_bound(plan);
  const std::vector<std::size_t> sent = plan.bytes_sent_by_rank();
  if (bound.bytes_sent != plan.bytes_sent() ||
      bound.bytes_between_hosts != plan.bytes_between_hosts()) {
    return "reshard_bound() finds another bound";
  }
  if (*std::max_element(sent.begin(), sent.end()) < bound.bytes_sent_by_busiest) {
    return "the busiest rank sends less than reshard_bound() finds";
  }
  // A plan that lacks one of its moves, or has one twice, is wrong.
  if (!plan.moves.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(one.seed % plan.moves.size());
    ReshardPlan less = plan;
    less.moves.erase(less.moves.begin() + at);
    ReshardPlan more = plan;
    more.moves.push_back(more.moves[static_cast<std::size_t>(at)]);
    if (verify_reshard(less).empty() || verify_reshard(more).empty()) {
      return "verify_reshard() accepts a plan with a move too few or too many";
    }
  }
  return {};
}

int main_of(const std::vector<std::string_view>& words) {
  std::uint32_t count = 1000;
  std::uint32_t first = 0;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    std::uint32_t value = 0;
    std::from_chars(words[i + 1].data(), words[i + 1].data() + words[i + 1].size(), value);
    if (words[i] == "--seed") {
      first = value;
      count = 1;
    } else {
      count = value;
    }
  }
  int wrong = 0;
  for (std::uint32_t seed = first; seed < first + count && wrong < 5; ++seed) {
    const Case one = draw(seed);
    std::string said;
    try {
      said = run(one);
    } catch (const Error& error) {
      said = error.what();
    }
    if (!said.empty()) {
      ++wrong;
      std::string shape;
      for (const std::size_t size : one.shape) {
        shape += (shape.empty() ? "" : "x") + std::to_string(size);
      }
      std::printf("--seed %u: [%s] from \"%s\" to \"%s\": %s\n", seed, shape.c_str(),
                  one.from.layout().text().c_str(), one.to.layout().text().c_str(), said.c_str());
    }
  }
  std::printf("%u reshards, %d wrong\n", count, wrong);
  return wrong == 0 ? 0U : 1U;
}

}  // namespace
}  // namespace unisono::parallel::testing

int main(int argc, char** argv) {
  return unisono::parallel::testing::main_of({argv + 1, argv + argc});
}
