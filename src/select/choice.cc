#include "select/choice.h"

#include <cstddef>

#include "algorithms/catalog.h"
#include "base/collectives.h"
#include "base/dtypes.h"
#include "schedule/tree_order.h"
#include "select/user_schedule.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

// Up to this size, a call is faster if every rank reduces the whole vector, because this saves one
// wait. For longer vectors, each rank reduces a part and forwards it.
constexpr std::size_t kOneShotBytes = 16384;

// Up to this size of all inputs, a flat scan is faster than a chain of ranks.
constexpr std::size_t kFlatScanBytes = 65536;

}  // namespace

std::size_t moved_size(const Call& call) {
  return size_of(moved_dtype(call.collective, call.dtype, call.reduction.op));
}

// In shared memory all ranks reach each other at the same cost, so the direct algorithms are best:
// they make the fewest passes over memory, and they sum in rank order.
std::string_view default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   bool in_order) {
  if (!moves_data(collective)) {
    return "dissemination";
  }
  // The last rank of a flat scan reads n-1 vectors; each rank of a chain reads one.
  if (is_scan(collective) && !in_order &&
      bytes * static_cast<std::size_t>(ranks) > kFlatScanBytes) {
    return "chain";
  }
  const bool one_shot = plain_form(collective) == Collective::all_reduce &&
                        bytes * static_cast<std::size_t>(ranks) <= 2 * kOneShotBytes;
  return one_shot ? "one_shot" : "flat";
}

std::optional<double> vector_bytes(const Call& call, int ranks) {
  if (!moves_data(call.collective)) {
    return 0;
  }
  const VectorCut cut = cut_of(call.collective);
  double elements = static_cast<double>(call.count);
  if (is_v_form(call.collective)) {
    if (cut == VectorCut::pairs) {
      return std::nullopt;
    }
    elements = 0;
    for (const std::size_t count : call.counts) {
      elements += static_cast<double>(count);
    }
  } else if (cut != VectorCut::none) {
    elements *= ranks;
  }
  return elements * static_cast<double>(moved_size(call));
}

bool has_fixed_order(std::string_view name) {
  return name == kReproducible || name == kTreeOrder;
}

std::map<Collective, std::string> parse_forced(std::string_view text) {
  std::map<Collective, std::string> forced;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (has_fixed_order(item)) {
      for (const Collective collective :
           {Collective::reduce, Collective::all_reduce, Collective::reduce_scatter}) {
        forced.try_emplace(collective, item);
      }
      for (const Collective collective : {Collective::scan, Collective::exclusive_scan}) {
        forced.try_emplace(collective, kReproducible);  // scans have no tree order
      }
      continue;
    }
    const std::size_t equals = item.find('=');
    const auto collective = parse_collective(item.substr(0, equals));
    if (equals == std::string_view::npos || !collective.has_value()) {
      throw Error(ErrorCode::config, "algorithm \"" + std::string(item) +
                                         "\" is not of the form collective=algorithm\n"
                                         "write for example all_reduce=ring,broadcast=binomial, "
                                         "reproducible or tree_order");
    }
    const std::string_view name = item.substr(equals + 1);
    if (is_user_schedule(name) || name == kReproducible) {
      forced[plain_form(*collective)] = name;
      continue;
    }
    const Algorithm* algorithm = find_algorithm(*collective, name);
    if (algorithm == nullptr) {
      throw Error(ErrorCode::config, std::string(item) + ": " + unfit_algorithm(*collective, name) +
                                         "\nthere are: " + list_algorithms(*collective));
    }
    parse_parameters(*algorithm, name);  // fail here, not at the first call
    forced[plain_form(*collective)] = name;
  }
  return forced;
}

std::string unfit_algorithm(Collective collective, std::string_view name) {
  if (find_algorithm(plain_form(collective), name) != nullptr) {
    return "\"" + std::string(name) + "\" does not support the v-form";
  }
  return "there is no algorithm \"" + std::string(name) + "\"";
}

std::string list_algorithms(Collective collective) {
  std::string names;
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective == plain_form(collective) &&
        (!is_v_form(collective) || algorithm->allows_v)) {
      names += (names.empty() ? "" : ", ") + std::string(algorithm->name);
    }
  }
  return names;
}

}  // namespace unisono::comm
