#include "algorithms/catalog.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

// The list: one line an algorithm.
#define UNISONO_CATALOG(ENTRY)            \
  ENTRY(broadcast_binomial)               \
  ENTRY(broadcast_chain)                  \
  ENTRY(broadcast_flat)                   \
  ENTRY(scatter_binomial)                 \
  ENTRY(scatter_flat)                     \
  ENTRY(gather_binomial)                  \
  ENTRY(gather_flat)                      \
  ENTRY(reduce_binomial)                  \
  ENTRY(reduce_flat)                      \
  ENTRY(all_reduce_ring)                  \
  ENTRY(all_reduce_recursive_doubling)    \
  ENTRY(all_reduce_halving_doubling)      \
  ENTRY(all_reduce_flat)                  \
  ENTRY(all_reduce_one_shot)              \
  ENTRY(all_gather_ring)                  \
  ENTRY(all_gather_recursive_doubling)    \
  ENTRY(all_gather_bruck)                 \
  ENTRY(all_gather_flat)                  \
  ENTRY(reduce_scatter_ring)              \
  ENTRY(reduce_scatter_recursive_halving) \
  ENTRY(reduce_scatter_flat)              \
  ENTRY(all_to_all_pairwise)              \
  ENTRY(all_to_all_bruck)                 \
  ENTRY(all_to_all_flat)                  \
  ENTRY(barrier_dissemination)            \
  ENTRY(barrier_flat)

namespace unisono {
namespace algorithms {

#define UNISONO_DECLARE(name) extern const Algorithm name;
UNISONO_CATALOG(UNISONO_DECLARE)
#undef UNISONO_DECLARE

}  // namespace algorithms

namespace {

#define UNISONO_ADDRESS(name) &algorithms::name,
constexpr auto kCatalog = std::to_array<const Algorithm*>({UNISONO_CATALOG(UNISONO_ADDRESS)});
#undef UNISONO_ADDRESS

Finding claim(std::string text) {
  Finding finding;
  finding.kind = Finding::Kind::claim;
  finding.text = std::move(text);
  return finding;
}

std::string edge_text(const Algorithm& algorithm, const Move& move) {
  return "step " + std::to_string(move.step) + ": edge " + std::to_string(move.from) + "->" +
         std::to_string(move.to) + " is no edge of " + std::string(algorithm.name);
}

std::string number_text(const char* what, int found, int claimed) {
  return "claim: " + std::to_string(found) + " " + what + ", not " + std::to_string(claimed);
}

}  // namespace

std::span<const Algorithm* const> catalog() {
  return kCatalog;
}

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  for (const Algorithm* algorithm : kCatalog) {
    if (algorithm->collective == plain_form(collective) && algorithm->name == name &&
        (algorithm->allows_v || !is_v_form(collective))) {
      return algorithm;
    }
  }
  return nullptr;
}

Schedule build_schedule(const Algorithm& algorithm, Shape shape) {
  Schedule schedule = algorithm.build(shape);
  schedule.algorithm = algorithm.name;
  return schedule;
}

std::vector<Finding> verify_claims(const Algorithm& algorithm, const Schedule& schedule) {
  std::vector<Finding> findings;
  if (plain_form(schedule.collective) != algorithm.collective) {
    findings.push_back(claim("claim: collective is " + std::string(to_string(schedule.collective)) +
                             ", not " + std::string(to_string(algorithm.collective))));
  }
  const int steps = algorithm.steps(schedule.ranks);
  if (schedule.steps != steps) {
    findings.push_back(claim(number_text("steps", schedule.steps, steps)));
  }
  const Shape shape{.ranks = schedule.ranks, .root = schedule.root};
  std::vector<int> sent(static_cast<std::size_t>(std::max(0, schedule.ranks)));
  for (const Move& move : schedule.moves) {
    const auto in_range = [&](int rank) { return rank >= 0 && rank < schedule.ranks; };
    if (!in_range(move.from) || !in_range(move.to) || move.from == move.to) {
      continue;  // verify reports the first two; a local move has no edge
    }
    sent[static_cast<std::size_t>(move.from)] += move.chunks;
    if (!algorithm.edge(shape, move.from, move.to)) {
      Finding finding = claim(edge_text(algorithm, move));
      finding.step = move.step;
      finding.rank = move.from;
      finding.chunk = move.chunk;
      finding.line = move.line;
      findings.push_back(std::move(finding));
    }
  }
  const int most = sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
  const int claimed = algorithm.chunks_sent(schedule.ranks);
  if (most != claimed) {
    findings.push_back(claim(number_text("chunks sent by one rank", most, claimed)));
  }
  return findings;
}

}  // namespace unisono
