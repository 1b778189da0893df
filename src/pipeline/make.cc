#include "pipeline/make.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "pipeline/bound.h"
#include "pipeline/catalog.h"
#include "pipeline/greedy.h"
#include "pipeline/run.h"
#include "pipeline/search.h"
#include "pipeline/stage_actions.h"
#include "pipeline/verify.h"

namespace unisono::pipeline {
namespace {

constexpr double kRounding = 1e-9;

struct Candidate {
  Orders orders = {};
  std::string from = {};
  double makespan = 0;
  bool is_entry = false;
};

class Making {
 public:
  Making(const Pipeline& frame, const MakeOptions& options)
      : frame_(frame), options_(options), tasks_(frame) {}

  Parsed<Made> run() {
    add_entries();
    add_greedy();
    if (candidates_.empty()) {
      return Parsed<Made>::failure("no order is known that needs at most " +
                                       json_number(options_.most_bytes) + " bytes on each rank",
                                   "memory");
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.makespan < b.makespan; });
    Made made;
    for (const Candidate& candidate : candidates_) {
      if (candidate.is_entry) {
        made.best_entry = candidate.from;
        made.best_entry_makespan = candidate.makespan;
        break;
      }
    }
    // The best starts share the work; what comes of the first is often not what is best.
    const std::size_t starts = std::min<std::size_t>(candidates_.size(), 4);
    made.makespan = -1;
    made.bound = least_makespan(tasks_, options_.most_bytes);
    for (std::size_t i = 0; i < starts; ++i) {
      if (i > 0 && made.makespan <= made.bound * (1 + kRounding)) {
        break;
      }
      consider(made, candidates_[i]);  // as it is: so nothing that follows can be worse
      Candidate bettered = candidates_[i];
      better(tasks_, bettered.orders,
             {.most_bytes = options_.most_bytes,
              .work = options_.work / static_cast<double>(starts),
              .enough = made.bound * (1 + kRounding)},
             options_.seed + i);
      consider(made, bettered);
    }
    set_capacity(made);
    return Parsed<Made>::success(std::move(made));
  }

 private:
  void add(Orders orders, std::string from, bool is_entry) {
    for (const std::vector<Task>& order : orders) {
      if (tasks_.peak_bytes(order) > options_.most_bytes) {
        return;
      }
    }
    tasks_.time(orders, timing_);
    if (timing_.makespan < std::numeric_limits<double>::infinity()) {
      candidates_.push_back({.orders = std::move(orders),
                             .from = std::move(from),
                             .makespan = timing_.makespan,
                             .is_entry = is_entry});
    }
  }

  // Those that have the same stages on the same ranks, and the order that the frame has.
  void add_entries() {
    const Shape shape{.ranks = frame_.ranks,
                      .chunks = std::max(1, frame_.stages() / frame_.ranks),
                      .microbatches = frame_.microbatches};
    for (const Entry* entry : catalog()) {
      if (!refusal(*entry, shape).empty()) {
        continue;
      }
      const Pipeline known = build(*entry, shape);
      if (known.stage_rank == frame_.stage_rank && known.chains == frame_.chains) {
        add(orders_of(known), std::string(entry->name), true);
      }
    }
    if (!frame_.actions.empty() && verify(frame_).least_capacity >= 0) {
      add(orders_of(frame_), frame_.name, false);
    }
  }

  void add_greedy() {
    for (const double ahead : {0.0, 1.0, 1.5, 2.0, 3.0, 1e6}) {
      for (const int more : {0, 1, 2}) {
        for (const double fill : {0.25, 0.6, 1.0}) {
          for (const bool forward_first : {false, true}) {
            const GreedyRule rule{
                .ahead = ahead, .more = more, .fill = fill, .forward_first = forward_first};
            if (std::optional<Orders> orders = greedy_orders(tasks_, options_.most_bytes, rule)) {
              add(std::move(*orders), "greedy", false);
            }
          }
        }
      }
    }
  }

  // As the player sees it, with lanes that hold all.
  void consider(Made& made, const Candidate& candidate) {
    Pipeline pipeline = with_orders(frame_, candidate.orders);
    copy_stage_actions(frame_, pipeline);
    pipeline.capacity = std::max(0, verify(pipeline).least_capacity);
    const double makespan = unlimited(pipeline);
    if (made.makespan < 0 || makespan < made.makespan) {
      made.pipeline = std::move(pipeline);
      made.makespan = makespan;
      made.from = candidate.from;
      made.start_makespan = candidate.makespan;
    }
  }

  static double unlimited(const Pipeline& pipeline) {
    return pipeline::run(pipeline, {.capacity = kUnlimited}).makespan;
  }

  static void set_capacity(Made& made) {
    int capacity = std::max(1, made.pipeline.capacity);
    while (pipeline::run(made.pipeline, {.capacity = capacity}).makespan > made.makespan) {
      capacity *= 2;
    }
    made.pipeline.capacity = capacity;
    made.pipeline.name = "made";
  }

  const Pipeline& frame_;
  const MakeOptions& options_;
  Tasks tasks_;
  Timing timing_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Parsed<Made> make(const Pipeline& frame, const MakeOptions& options) {
  return Making(frame, options).run();
}

}  // namespace unisono::pipeline
