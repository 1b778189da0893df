#include "planner/arrivals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <random>

#include "base/quantile.h"

namespace unisono::planner {
namespace {

constexpr int kLeastRequests = 8'000;
constexpr int kLeastForgotten = 1'000;
constexpr int kForgottenTimes = 4;  // multiple of the answers in progress
constexpr std::uint64_t kSeed = 2026;

struct Answer {
  double started = 0;    // when its prompt had been read
  double last_step = 0;  // number of the step that ends it, counted from the start
};

class Arrivals {
 public:
  explicit Arrivals(double per_s) : mean_s_(1 / per_s) { advance(); }

  double next() const { return next_; }

  double take() {
    const double now = next_;
    advance();
    return now;
  }

 private:
  // Standard libraries differ in their distributions, so the draw is made here.
  void advance() {
    constexpr int kUnused = 11;
    const double uniform = static_cast<double>(random_() >> kUnused) * 0x1p-53;
    next_ -= std::log1p(-uniform) * mean_s_;
  }

  double mean_s_;
  double next_ = 0;
  std::mt19937_64 random_{kSeed};
};

Quantiles quantiles(const std::vector<double>& values) {
  return {.half = quantile(values, 0.5),
          .nine_of_ten = quantile(values, 0.9),
          .most = quantile(values, 0.99)};
}

}  // namespace

double RequestServer::step_of(int answers) const {
  const auto count = static_cast<unsigned>(std::max(answers, 1));
  const auto below = static_cast<std::size_t>(std::bit_width(count)) - 1;
  if (below + 1 >= step_s.size()) {
    return step_s.empty() ? 0 : step_s.back();
  }
  const double base = std::exp2(below);
  return std::lerp(step_s[below], step_s[below + 1], (count - base) / base);
}

double RequestServer::most_per_s() const {
  const double busy_s = prompt_s + steps * step_of(at_once) / at_once;
  return busy_s > 0 ? 1 / busy_s : std::numeric_limits<double>::infinity();
}

Waits play_arrivals(const RequestServer& server, double per_s) {
  const int forgotten = std::max(kLeastForgotten, kForgottenTimes * server.at_once);
  const int requests = forgotten + std::max(kLeastRequests, 2 * kForgottenTimes * server.at_once);
  Arrivals arrivals(per_s);
  std::deque<double> waiting;    // arrival times of the waiting requests
  std::deque<Answer> answering;  // sorted by end, because all answers have equal length
  std::vector<double> first_token_s;
  std::vector<double> token_s;
  double now = 0;
  double steps = 0;
  double counted_from = 0;
  double answer_seconds = 0;  // sum over the answers, since counted_from
  const auto pass = [&](double seconds) {
    answer_seconds += seconds * static_cast<double>(answering.size());
    now += seconds;
  };
  for (int begun = 0; begun < requests;) {
    while (arrivals.next() <= now) {
      waiting.push_back(arrivals.take());
    }
    const bool has_place = static_cast<int>(answering.size()) < server.at_once;
    if (has_place && !waiting.empty()) {
      pass(server.prompt_s);
      if (begun >= forgotten) {
        first_token_s.push_back(now - waiting.front() + server.first_extra_s);
      }
      if (++begun == forgotten) {
        counted_from = now;
        answer_seconds = 0;
      }
      waiting.pop_front();
      if (server.steps > 0) {
        answering.push_back({.started = now, .last_step = steps + server.steps});
      }
    } else if (answering.empty()) {
      now = arrivals.next();
    } else {
      // Runs steps until an answer ends, or until a request arrives for which there is room.
      const double step_s = server.step_of(static_cast<int>(answering.size()));
      double count = std::ceil(answering.front().last_step - steps);
      if (has_place) {
        count = std::clamp(std::ceil((arrivals.next() - now) / step_s), 1.0, count);
      }
      pass(count * step_s);
      steps += count;
      for (; !answering.empty() && answering.front().last_step <= steps; answering.pop_front()) {
        if (begun >= forgotten) {
          token_s.push_back((now - answering.front().started) / server.tokens);
        }
      }
    }
  }
  return {.first_token_s = quantiles(first_token_s),
          .token_s = quantiles(token_s),
          .at_once = now > counted_from ? answer_seconds / (now - counted_from) : 0};
}

}  // namespace unisono::planner
