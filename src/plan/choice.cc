#include "plan/choice.h"

#include <cstddef>

#include "algorithms/catalog.h"
#include "plan/user_schedule.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

// Up to here it is faster that every rank reduces everything than that each reduces a part and
// passes it on: one wait less.
constexpr std::size_t kOneShotBytes = 16384;

}  // namespace

// In shared memory everybody reaches everybody at the same cost, so the direct algorithms are best:
// the fewest passes over memory, and sums in rank order.
std::string_view default_algorithm(Collective collective, int ranks, std::size_t bytes) {
  switch (plain_form(collective)) {
    case Collective::all_reduce:
      return bytes * static_cast<std::size_t>(ranks) <= 2 * kOneShotBytes ? "one_shot" : "flat";
    case Collective::barrier:
      return "dissemination";
    default:
      return "flat";
  }
}

std::optional<double> vector_bytes(const Call& call, int ranks) {
  double elements = static_cast<double>(call.count);
  switch (call.collective) {
    case Collective::all_to_all_v:
      return std::nullopt;
    case Collective::barrier:
      return 0;
    case Collective::scatter:
    case Collective::gather:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      elements *= ranks;
      break;
    default:
      if (is_v_form(call.collective)) {
        elements = 0;
        for (const std::size_t count : call.counts) {
          elements += static_cast<double>(count);
        }
      }
      break;
  }
  return elements * static_cast<double>(size_of(call.dtype));
}

std::map<Collective, std::string> parse_forced(std::string_view text) {
  std::map<Collective, std::string> forced;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const auto collective = parse_collective(item.substr(0, equals));
    if (equals == std::string_view::npos || !collective.has_value()) {
      throw Error(ErrorCode::config, "algorithm \"" + std::string(item) +
                                         "\" is not of the form collective=algorithm\n"
                                         "write for example all_reduce=ring,broadcast=binomial");
    }
    const std::string_view name = item.substr(equals + 1);
    if (is_own_schedule(name)) {
      forced[*collective] = name;
      continue;
    }
    const Algorithm* algorithm = find_algorithm(*collective, name);
    if (algorithm == nullptr) {
      throw Error(ErrorCode::config, std::string(item) + ": " + unfit_algorithm(*collective, name) +
                                         "\nthere are: " + list_algorithms(*collective));
    }
    parse_parameters(*algorithm, name);  // refused here, not at the first call
    forced[plain_form(*collective)] = name;
  }
  return forced;
}

std::string unfit_algorithm(Collective collective, std::string_view name) {
  if (find_algorithm(plain_form(collective), name) != nullptr) {
    return "\"" + std::string(name) + "\" cannot serve the v-form";
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
