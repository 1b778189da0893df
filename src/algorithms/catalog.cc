#include "algorithms/catalog.h"

#include <array>
#include <string>

#include "base/private.h"

// The catalogue: one line per algorithm.
#define UNISONO_CATALOG(ENTRY)             \
  ENTRY(broadcast_binomial)                \
  ENTRY(broadcast_chain)                   \
  ENTRY(broadcast_flat)                    \
  ENTRY(broadcast_knomial)                 \
  ENTRY(broadcast_scatter_all_gather)      \
  ENTRY(broadcast_double_tree)             \
  ENTRY(broadcast_hierarchical)            \
  ENTRY(scatter_binomial)                  \
  ENTRY(scatter_flat)                      \
  ENTRY(scatter_knomial)                   \
  ENTRY(gather_binomial)                   \
  ENTRY(gather_flat)                       \
  ENTRY(gather_knomial)                    \
  ENTRY(reduce_binomial)                   \
  ENTRY(reduce_flat)                       \
  ENTRY(reduce_knomial)                    \
  ENTRY(reduce_reduce_scatter_gather)      \
  ENTRY(reduce_double_tree)                \
  ENTRY(reduce_tree_order)                 \
  ENTRY(all_reduce_ring)                   \
  ENTRY(all_reduce_recursive_doubling)     \
  ENTRY(all_reduce_halving_doubling)       \
  ENTRY(all_reduce_flat)                   \
  ENTRY(all_reduce_one_shot)               \
  ENTRY(all_reduce_recursive_multiplying)  \
  ENTRY(all_reduce_double_tree)            \
  ENTRY(all_reduce_hierarchical)           \
  ENTRY(all_reduce_tree_order)             \
  ENTRY(all_gather_ring)                   \
  ENTRY(all_gather_recursive_doubling)     \
  ENTRY(all_gather_bruck)                  \
  ENTRY(all_gather_flat)                   \
  ENTRY(all_gather_recursive_multiplying)  \
  ENTRY(all_gather_neighbour_exchange)     \
  ENTRY(all_gather_pat)                    \
  ENTRY(all_gather_hierarchical)           \
  ENTRY(reduce_scatter_ring)               \
  ENTRY(reduce_scatter_recursive_halving)  \
  ENTRY(reduce_scatter_flat)               \
  ENTRY(reduce_scatter_pat)                \
  ENTRY(reduce_scatter_hierarchical)       \
  ENTRY(reduce_scatter_tree_order)         \
  ENTRY(all_to_all_pairwise)               \
  ENTRY(all_to_all_bruck)                  \
  ENTRY(all_to_all_flat)                   \
  ENTRY(all_to_all_hierarchical)           \
  ENTRY(barrier_dissemination)             \
  ENTRY(barrier_flat)                      \
  ENTRY(scan_chain)                        \
  ENTRY(scan_recursive_doubling)           \
  ENTRY(scan_flat)                         \
  ENTRY(exclusive_scan_chain)              \
  ENTRY(exclusive_scan_recursive_doubling) \
  ENTRY(exclusive_scan_flat)

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

AlgorithmParameters defaults_of(const Algorithm& algorithm, int ranks) {
  return algorithm.defaults == nullptr ? AlgorithmParameters{} : algorithm.defaults(ranks);
}

}  // namespace

std::span<const Algorithm* const> catalog() {
  return kCatalog;
}

UNISONO_PRIVATE const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  name = base_name(name);
  for (const Algorithm* algorithm : kCatalog) {
    if (algorithm->collective == plain_form(collective) && algorithm->name == name &&
        (algorithm->allows_v || !is_v_form(collective))) {
      return algorithm;
    }
  }
  return nullptr;
}

UNISONO_PRIVATE AlgorithmParameters parse_parameters(const Algorithm& algorithm,
                                                     std::string_view name) {
  return parse_parameters(name, defaults_of(algorithm, 2));
}

UNISONO_PRIVATE Shape complete(const Algorithm& algorithm, Shape shape) {
  shape.parameters = or_defaults(shape.parameters, defaults_of(algorithm, shape.ranks));
  return shape;
}

std::string full_name(const Algorithm& algorithm, Shape shape) {
  return std::string(algorithm.name) +
         to_text(without_defaults(shape.parameters, defaults_of(algorithm, shape.ranks)));
}

Shape shape_of(const Algorithm& algorithm, const Schedule& schedule) {
  return complete(algorithm, {.ranks = schedule.ranks,
                              .root = schedule.root,
                              .parameters = parse_parameters(algorithm, schedule.algorithm)});
}

UNISONO_PRIVATE bool can_serve(const Algorithm& algorithm, Shape shape) {
  return algorithm.supports == nullptr || algorithm.supports(complete(algorithm, shape));
}

UNISONO_PRIVATE Schedule build_schedule(const Algorithm& algorithm, Shape shape) {
  Schedule schedule = algorithm.build(complete(algorithm, shape));
  schedule.algorithm = full_name(algorithm, shape);
  return schedule;
}

}  // namespace unisono
