#include "network_model/expert_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "network_model/least_squares.h"

namespace unisono::network_model {
namespace {

// The start of the search: a typical current machine.
enum Own : std::size_t { kFloor, kNear, kRate, kEach, kOwn };
constexpr std::array<double, kOwn> kOwnStart = {25, 400, 40, 0.1};  // us, bytes/ns, us
enum Shared : std::size_t {
  kLatency,   // ns per byte of the rows of one token
  kOwnRow,    // rows that a processor handles besides the m rows of a token
  kRow,       // us of a processor per token
  kSharp,     // sharpness of the transition from one bound to another
  kRamp,      // part of the floor that remains under load
  kAfter,     // kilobytes per processor at which half of that applies
  kFar,       // bytes/ns between hosts
  kLeave,     // us
  kOfExpert,  // us
  kShared
};
constexpr std::array<double, kShared> kSharedStart = {0.1, 0.3, 0.2, 3, 0.2, 100, 40, 8, 0.03};

constexpr double kTimeDeviation = 0.1;  // relative deviation of a measured time
constexpr double kNearOthers = 1;       // deviation of a machine's constants from the other
                                        // machines'
constexpr double kNearStart = 0.2;      // deviation from the start, for constants that no point
                                        // determines

double larger(double a, double b, double sharp) {
  const double most = std::max({a, b, 1e-12});
  return most * std::pow(std::pow(a / most, sharp) + std::pow(b / most, sharp), 1 / sharp);
}

}  // namespace

// The rows of a token, the rows for other hosts, and the processors that copy them.
struct ExpertFit::Rows {
  std::size_t first;  // index of the machine's first constant
  double kilobytes;
  double all;
  double far;
  double processors;
  double tokens;
  bool leaves;  // has rows for other hosts
  double experts_of_rank;
};

ExpertFit::Rows ExpertFit::rows_of(const ExpertPoint& point) const {
  const ExpertShape& shape = point.shape;
  const bool is_normal = point.mode == ExpertMode::normal;
  const double experts = shape.experts;
  Rows rows{.first = machines_.at(point.machine) * kOwn,
            .kilobytes = (call_ == Call::combine || is_normal ? combine_row_bytes(shape.hidden)
                                                              : dispatch_row_bytes(shape.hidden)) /
                         1e3,
            .all = static_cast<double>(shape.k),
            .far = shape.k * (point.hosts - 1.0) / point.hosts,
            .processors = experts,
            .tokens = shape.tokens,
            .leaves = point.hosts > 1,
            .experts_of_rank = experts / point.ranks};
  if (is_normal) {
    rows.all = point.ranks * chance_of_part(shape, experts / point.ranks);
    rows.far = (point.hosts - 1) * chance_of_part(shape, experts / point.hosts);
    rows.processors = point.processors;
  }
  return rows;
}

double ExpertFit::us_by(const Rows& rows, std::span<const double> logs) const {
  const auto own = [&](Own constant) { return std::exp(logs[rows.first + constant]); };
  const auto shared = [&](Shared constant) {
    return std::exp(logs[machines_.size() * kOwn + constant]);
  };
  const double tokens = rows.tokens;
  const double moved = tokens * rows.all * rows.kilobytes;
  const double sharp = 1 + shared(kSharp);
  const double work = (tokens * (rows.all + shared(kOwnRow)) * rows.kilobytes / own(kRate) +
                       tokens * (shared(kRow) + rows.all * own(kEach))) /
                      rows.processors;
  double us = larger(moved / own(kNear), work, sharp);
  if (rows.leaves) {
    us = shared(kLeave) + larger(us, tokens * rows.far * rows.kilobytes / shared(kFar), sharp);
  }
  const double each = moved / rows.processors;
  return us + own(kFloor) * (1 + shared(kRamp) * each / (each + shared(kAfter))) +
         rows.all * rows.kilobytes * shared(kLatency) + rows.experts_of_rank * shared(kOfExpert);
}

ExpertFit::ExpertFit(std::span<const ExpertPoint> points, Call call) : call_(call) {
  for (const ExpertPoint& point : points) {
    machines_.try_emplace(point.machine, machines_.size());
  }
  std::vector<Rows> rows;
  std::vector<double> measured;
  for (const ExpertPoint& point : points) {
    rows.push_back(rows_of(point));
    measured.push_back(call == Call::combine ? point.combine_us : point.dispatch_us);
  }
  std::vector<double> start;
  for (std::size_t i = 0; i < machines_.size() * kOwn; ++i) {
    start.push_back(std::log(kOwnStart[i % kOwn]));
  }
  for (const double constant : kSharedStart) {
    start.push_back(std::log(constant));
  }
  const auto residuals = [&](std::span<const double> x, std::span<double> r) {
    std::size_t next = 0;
    for (; next < rows.size(); ++next) {
      r[next] = std::log(us_by(rows[next], x) / measured[next]) / kTimeDeviation;
    }
    const std::size_t count = machines_.size() * kOwn;
    for (std::size_t constant = 0; constant < kOwn; ++constant) {
      double mean = 0;
      for (std::size_t i = constant; i < count; i += kOwn) {
        mean += x[i] / static_cast<double>(machines_.size());
      }
      for (std::size_t i = constant; i < count; i += kOwn) {
        r[next++] = kNearOthers * (x[i] - mean);
      }
      r[next++] = kNearStart * (mean - start[constant]);
    }
    for (std::size_t i = count; i < x.size(); ++i) {
      r[next++] = kNearStart * (x[i] - start[i]);
    }
  };
  logs_ = minimise({.residuals = residuals, .count = points.size() + start.size() + kOwn}, start).x;
}

double ExpertFit::us(const ExpertPoint& point) const {
  return us_by(rows_of(point), logs_);
}

}  // namespace unisono::network_model
