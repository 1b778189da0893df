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
#include "pipeline/transfers.h"
#include "pipeline/verify.h"

namespace unisono::pipeline {
namespace {

constexpr double kRounding = 1e-9;
constexpr std::size_t kStarts = 4;  // of the search
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A starting point of the search.
struct Start {
  Orders orders = {};
  std::string from = {};
  double makespan = 0;
};

class Making {
 public:
  Making(const Pipeline& frame, const MakeOptions& options)
      : frame_(frame), options_(options), tasks_(frame) {
    made_.makespan = kInfinity;
    made_.best_entry_makespan = kInfinity;
  }

  Parsed<Made> run() {
    add_entries();
    if (!frame_.actions.empty() && verify(frame_).least_capacity >= 0) {
      Pipeline pipeline = frame_;
      if (!has_transfers(pipeline)) {
        add_transfers(pipeline);
      }
      add(std::move(pipeline), frame_.name);
    }
    add_greedy();
    if (starts_.empty() && made_.makespan == kInfinity) {
      return Parsed<Made>::failure("no order was found within the limit of " +
                                       json_number(options_.most_bytes) + " on each rank",
                                   "memory");
    }
    made_.bound = least_makespan(tasks_, options_.most_bytes);
    for (const Start& start : starts_) {
      consider(start.orders, start);
    }
    // All starts share the work, because the best start often does not lead to the best result.
    std::uint64_t seed = options_.seed;
    const double enough = made_.bound * (1 + kRounding);
    for (Start& start : starts_) {
      if (made_.makespan <= enough) {
        break;
      }
      better(tasks_, start.orders,
             {.most_bytes = options_.most_bytes,
              .work = options_.work / static_cast<double>(starts_.size()),
              .enough = enough},
             seed++);
      consider(start.orders, start);
    }
    set_capacity();
    return Parsed<Made>::success(std::move(made_));
  }

 private:
  // Adds the catalogue entries with the same stages on the same ranks.
  void add_entries() {
    for (const Entry* entry : catalog()) {
      // Entries with two chains have twice as many stages as chunks.
      const PipelineSize shape{.ranks = frame_.ranks,
                               .chunks = entry->chunks != 0
                                             ? entry->chunks
                                             : std::max(1, frame_.stages() / frame_.ranks),
                               .microbatches = frame_.microbatches};
      if (!refusal(*entry, shape).empty()) {
        continue;
      }
      Pipeline known = entry->build(shape);
      if (known.stage_rank != frame_.stage_rank || known.chains != frame_.chains) {
        continue;
      }
      Pipeline pipeline = frame_;
      pipeline.actions = std::move(known.actions);
      copy_stage_actions(frame_, pipeline);
      add_transfers(pipeline);
      const double makespan = add(std::move(pipeline), std::string(entry->name));
      if (makespan < made_.best_entry_makespan) {
        made_.best_entry = entry->name;
        made_.best_entry_makespan = makespan;
      }
    }
  }

  // Adds an existing order unchanged, so that the result is not worse, and as a start in which each
  // B becomes I and W, which may need more memory. Returns its time; infinite if it exceeds the
  // limit.
  double add(Pipeline pipeline, const std::string& from) {
    const Verdict verdict = verify(pipeline);
    add_start(orders_of(pipeline), from);
    if (*std::max_element(verdict.peak_bytes.begin(), verdict.peak_bytes.end()) >
        options_.most_bytes) {
      return kInfinity;
    }
    pipeline.capacity = std::max(0, verdict.least_capacity);
    const double makespan = unlimited(pipeline);
    take(std::move(pipeline), {.from = from, .makespan = makespan}, makespan);
    return makespan;
  }

  void add_start(Orders orders, std::string from) {
    for (const std::vector<Task>& order : orders) {
      if (tasks_.peak_bytes(order) > options_.most_bytes) {
        return;
      }
    }
    tasks_.time(orders, timing_);
    const auto place = std::upper_bound(
        starts_.begin(), starts_.end(), timing_.makespan,
        [](double makespan, const Start& start) { return makespan < start.makespan; });
    if (timing_.makespan == kInfinity || place - starts_.begin() == kStarts) {
      return;
    }
    starts_.insert(
        place,
        {.orders = std::move(orders), .from = std::move(from), .makespan = timing_.makespan});
    starts_.resize(std::min(starts_.size(), kStarts));
  }

  // Spends at most half of the work on greedy orders.
  void add_greedy() {
    double work = options_.work / 2;
    for (const double ahead : {0.0, 1.0, 1.5, 2.0, 3.0, 1e6}) {
      for (const int more : {0, 1, 2}) {
        for (const double fill : {0.25, 0.6, 1.0}) {
          for (const bool forward_first : {false, true}) {
            const GreedyRule rule{
                .ahead = ahead, .more = more, .fill = fill, .forward_first = forward_first};
            if (std::optional<Orders> orders = greedy_orders(tasks_, options_.most_bytes, rule)) {
              add_start(std::move(*orders), "greedy");
            }
            work -= static_cast<double>(tasks_.count());
            if (work < 0) {
              return;
            }
          }
        }
      }
    }
  }

  // Evaluates orders with the player, with unlimited lanes.
  void consider(const Orders& orders, const Start& start) {
    Pipeline pipeline = with_orders(frame_, orders);
    copy_stage_actions(frame_, pipeline);
    pipeline.capacity = std::max(0, verify(pipeline).least_capacity);
    const double makespan = unlimited(pipeline);
    take(std::move(pipeline), start, makespan);
  }

  void take(Pipeline pipeline, const Start& start, double makespan) {
    if (makespan < made_.makespan) {
      made_.pipeline = std::move(pipeline);
      made_.makespan = makespan;
      made_.from = start.from;
      made_.start_makespan = start.makespan;
    }
  }

  static double unlimited(const Pipeline& pipeline) {
    return pipeline::run(pipeline, {.capacity = kUnlimited}).makespan;
  }

  void set_capacity() {
    int capacity = std::max(1, made_.pipeline.capacity);
    while (pipeline::run(made_.pipeline, {.capacity = capacity}).makespan > made_.makespan) {
      capacity *= 2;
    }
    made_.pipeline.capacity = capacity;
    made_.pipeline.name = "made";
    if (made_.best_entry.empty()) {
      made_.best_entry_makespan = 0;
    }
  }

  const Pipeline& frame_;
  const MakeOptions& options_;
  Tasks tasks_;
  Timing timing_;
  std::vector<Start> starts_;  // fastest first
  Made made_;
};

}  // namespace

Parsed<Made> make(const Pipeline& frame, const MakeOptions& options) {
  return Making(frame, options).run();
}

}  // namespace unisono::pipeline
