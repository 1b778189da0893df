#include "network_model/plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "algorithms/segments.h"
#include "schedule/schedule.h"

namespace unisono::network_model {
namespace {

constexpr double kRangeStep = 1.25;
constexpr double kSame = 0.005;  // relative differences reported as equal

constexpr int kMostSegments = 1024;

cost::Cost closed_cost(const Algorithm& algorithm, Shape shape, double bytes) {
  return {.messages = algorithm.cost(shape, {.alpha = 1}),
          .bytes = algorithm.cost(shape, {.beta = bytes}),
          .reduced_bytes = algorithm.cost(shape, {.gamma = bytes})};
}

// Returns the shapes that may be fastest: the default shape, and shapes with other segment counts
// and radices.
std::vector<Shape> shapes_of(const Algorithm& algorithm, int ranks, double bytes,
                             const cost::Parameters& parameters) {
  const Shape usual = complete(algorithm, {.ranks = ranks});
  std::vector<Shape> shapes = {usual};
  if (usual.parameters.segments > 0) {
    const int best = optimal_segments(algorithm, usual, bytes, parameters.alpha_s,
                                      parameters.beta_s_per_byte + parameters.gamma_s_per_byte);
    shapes.push_back(usual);
    shapes.back().parameters.segments = std::min(best, kMostSegments);
    for (int segments = 1; segments <= kMostSegments; segments += 1 + segments / 4) {
      shapes.push_back(usual);
      shapes.back().parameters.segments = segments;
    }
  }
  if (usual.parameters.radix > 0) {
    for (const int radix : {2, 3, 4, 5, 6, 8, 12, 16, 32}) {
      shapes.push_back(usual);
      shapes.back().parameters.radix = radix;
    }
  }
  std::erase_if(shapes, [&](const Shape& shape) { return !can_serve(algorithm, shape); });
  return shapes;
}

Shape best_shape(const Algorithm& algorithm, int ranks, double bytes,
                 const cost::Parameters& parameters) {
  const std::vector<Shape> shapes = shapes_of(algorithm, ranks, bytes, parameters);
  if (shapes.size() == 1) {
    return shapes.front();
  }
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double time = cost::closed_time_s(algorithm, shapes[i], bytes, parameters);
    if (time < least * (1 - 1e-12)) {
      least = time;
      best = i;
    }
  }
  return shapes[best];
}

void count(Candidate& candidate, const Schedule& schedule, const Call& call,
           const cost::Parameters& parameters) {
  candidate.moved = cost::traffic(schedule, call.bytes);
  candidate.cost = cost::critical_path(schedule, call.bytes, parameters);
  candidate.time_s = candidate.cost.time_s(parameters);
}

Candidate make_candidate(const Algorithm& algorithm, const Shape& shape, const Call& call,
                         const cost::Parameters& parameters) {
  Candidate candidate{.algorithm = &algorithm,
                      .shape = shape,
                      .name = full_name(algorithm, shape),
                      .cost = {},
                      .moved = {}};
  if (call.ranks <= kMostBuiltRanks) {
    count(candidate, build_schedule(algorithm, shape), call, parameters);
  } else {
    candidate.cost = closed_cost(algorithm, shape, call.bytes);
    candidate.moved.steps = algorithm.steps(shape);
    candidate.time_s = candidate.cost.time_s(parameters);
  }
  return candidate;
}

void add_asked(Plan& plan, const Asked& asked) {
  if (asked.own != nullptr) {
    Candidate candidate{.shape = {.ranks = plan.call.ranks},
                        .name = asked.name,
                        .cost = {},
                        .moved = {},
                        .is_asked = true};
    count(candidate, *asked.own, plan.call, plan.parameters);
    plan.candidates.push_back(std::move(candidate));
    return;
  }
  const Shape shape =
      complete(*asked.algorithm, {.ranks = plan.call.ranks, .parameters = asked.parameters});
  const bool is_free = asked.parameters == AlgorithmParameters{};
  for (Candidate& candidate : plan.candidates) {
    if (candidate.algorithm == asked.algorithm &&
        (is_free || candidate.shape.parameters == shape.parameters)) {
      candidate.is_asked = true;
      return;
    }
  }
  if (can_serve(*asked.algorithm, shape)) {
    plan.candidates.push_back(make_candidate(*asked.algorithm, shape, plan.call, plan.parameters));
    plan.candidates.back().is_asked = true;
  }
}

const Algorithm* fastest_at(const Plan& plan, double bytes) {
  const Algorithm* fastest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.algorithm == nullptr) {
      continue;
    }
    const Shape shape = best_shape(*candidate.algorithm, plan.call.ranks, bytes, plan.parameters);
    const double time = cost::closed_time_s(*candidate.algorithm, shape, bytes, plan.parameters);
    if (time < least * (1 - 1e-12)) {
      least = time;
      fastest = candidate.algorithm;
    }
  }
  return fastest;
}

// Returns the size, within a part in 100,000, from which on `before` is no longer the fastest.
double border(const Plan& plan, double below, double above, const Algorithm* before) {
  while (above > below * 1.00001 && above > below + 0.5) {
    const double middle = std::sqrt(below * above);
    (fastest_at(plan, middle) == before ? below : above) = middle;
  }
  return above;
}

std::vector<SizeRange> find_ranges(const Plan& plan) {
  std::vector<SizeRange> ranges;
  double before = 1;
  for (double bytes = 1; bytes <= kMostRangeBytes; bytes *= kRangeStep) {
    const Algorithm* fastest = fastest_at(plan, bytes);
    if (ranges.empty()) {
      ranges.push_back({.algorithm = fastest, .from_bytes = 0});
    } else if (fastest != ranges.back().algorithm) {
      ranges.push_back({.algorithm = fastest,
                        .from_bytes = border(plan, before, bytes, ranges.back().algorithm)});
    }
    before = bytes;
  }
  return ranges;
}

// Phrases for two compared amounts, whole so that a translation can match them.
struct Phrases {
  std::string_view same;
  std::string_view less;
  std::string_view more;
};
constexpr Phrases kBytes = {"same bytes on the critical path as ",
                            " % less bytes on the critical path than ",
                            " % more bytes on the critical path than "};
constexpr Phrases kReduced = {"same reduced as there", " % less reduced than there",
                              " % more reduced than there"};

std::string compared(double first, double second, const Phrases& phrases) {
  const double ratio = second > 0 ? first / second : 1;
  if (std::abs(ratio - 1) <= kSame) {
    return std::string(phrases.same);
  }
  return std::to_string(std::lround(100 * std::abs(ratio - 1)))
      .append(ratio < 1 ? phrases.less : phrases.more);
}

}  // namespace

Plan make_plan(const Call& call, const cost::Parameters& parameters, const Asked* asked) {
  const double bytes = call.collective == Collective::barrier ? 0 : call.bytes;
  Plan plan{.call = {.collective = call.collective, .ranks = call.ranks, .bytes = bytes},
            .parameters = parameters,
            .bound = cost::lower_bound(call.collective, call.ranks, bytes)};
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != plain_form(call.collective) ||
        (is_v_form(call.collective) && !algorithm->allows_v)) {
      continue;
    }
    if (can_serve(*algorithm, {.ranks = call.ranks})) {
      const Shape best = best_shape(*algorithm, call.ranks, bytes, parameters);
      plan.candidates.push_back(make_candidate(*algorithm, best, plan.call, parameters));
    } else {
      plan.unable.push_back(algorithm);
    }
  }
  if (asked != nullptr) {
    add_asked(plan, *asked);
  }
  // Ties within rounding keep the catalogue order.
  std::stable_sort(
      plan.candidates.begin(), plan.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.time_s < b.time_s * (1 - 1e-12); });
  if (!plan.candidates.empty()) {
    plan.ranges = find_ranges(plan);
  }
  return plan;
}

std::string reason(const Candidate& first, const Candidate& second) {
  std::string text;
  if (first.cost.bytes > 0 || second.cost.bytes > 0) {
    text = compared(first.cost.bytes, second.cost.bytes, kBytes) + second.name + ", ";
  }
  const auto number = [](double messages) {
    return std::to_string(static_cast<std::int64_t>(messages));
  };
  if (first.cost.messages == second.cost.messages) {
    text += "as many messages";
  } else {
    text += number(first.cost.messages) +
            (first.cost.messages == 1 ? " message instead of " : " messages in a row instead of ") +
            number(second.cost.messages);
  }
  const double reduced = second.cost.reduced_bytes;
  if (reduced > 0 && std::abs(first.cost.reduced_bytes / reduced - 1) > kSame) {
    text += ", " + compared(first.cost.reduced_bytes, reduced, kReduced);
  }
  return text;
}

}  // namespace unisono::network_model
