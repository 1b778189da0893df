// Searches for layouts that serve a model: with as many concurrent requests as limits allow, or
// with requests that arrive at random.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/search.h"

namespace unisono::planner {
namespace {

// Uses the requested concurrency; otherwise doubles it as long as memory and limits allow.
template <typename Keeps, typename Estimator>
ServingEstimate most_at_once(const ServingTask& task, const Cluster& cluster,
                             const ServingLayout& layout, const Keeps& keeps,
                             const Estimator& estimate_of) {
  constexpr int kMostAtOnce = 4096;  // per group
  ServingTask asked = asked_of(task, layout);
  ServingEstimate estimate = estimate_of(layout, asked);
  for (int more = 2; task.concurrency == 0 && more <= kMostAtOnce; more *= 2) {
    asked.concurrency = more * layout.dp;
    const ServingEstimate next = estimate_of(layout, asked);
    if (next.memory.total() > cluster.usable_bytes() || !keeps(next)) {
      break;
    }
    estimate = next;
  }
  return estimate;
}

// Calls `attempt` for all layouts of one instance on some of the devices.
template <typename Try>
void each_serving_layout(const ModelShape& shape, const Cluster& cluster,
                         const SearchOptions& options, const Try& attempt) {
  for (const int tp : divisors(cluster.devices, shape.heads)) {
    options.progress("layouts with tp=" + std::to_string(tp));
    const bool spreads = shape.has_experts() && shape.experts % tp == 0;
    for (const int pp : divisors(cluster.devices / tp, std::min(shape.layers, 64))) {
      const int groups = cluster.devices / tp / pp;
      for (const int dp : divisors(groups, spreads ? shape.experts / tp : 1)) {
        const int instances = groups / dp;
        if (dp == 1 || shape.experts % (tp * dp) == 0) {
          attempt(ServingLayout{
              .tp = tp, .pp = pp, .ep = spreads ? tp * dp : 1, .dp = dp, .instances = instances});
        }
      }
    }
  }
}

// Returns instances of 1, 2, 4, ... devices that only read prompts. While a prompt is read, its
// cache is sent to an answering device.
std::vector<PromptPool> prompt_pools(const ModelShape& shape, const ServingTask& task,
                                     const Cluster& cluster, const SearchOptions& options) {
  std::vector<PromptPool> pools;
  for (int devices = 1; devices < cluster.devices; devices *= 2) {
    Cluster part = cluster;
    part.devices = devices;
    each_serving_layout(shape, part, options, [&](const ServingLayout& layout) {
      ServingTask asked = task;
      asked.concurrency = layout.dp;
      if (layout.instances > 1 || !problem_of(shape, layout, asked).empty()) {
        return;  // the caller that divides the devices chooses the number of instances
      }
      const PromptPool pool = estimate_prompts(shape, layout, asked, cluster);
      if (pool.memory.total() <= cluster.usable_bytes()) {
        pools.push_back(pool);
      }
    });
  }
  return pools;
}

bool more_tokens(const ServingEstimate& a, const ServingEstimate& b) {
  return a.tokens_per_s_device > b.tokens_per_s_device;
}

// Divides the devices so that prompts and answers keep pace best.
void add_pools(const ModelShape& shape, const ServingTask& task, const ServingLimits& limits,
               const Cluster& cluster, const SearchOptions& options,
               Sieve<ServingEstimate>& sieve) {
  const std::vector<PromptPool> pools = prompt_pools(shape, task, cluster, options);
  const auto keeps = [&](const ServingEstimate& estimate) {
    return limits.token_s == 0 || estimate.token_s <= limits.token_s;
  };
  const auto estimate_of = [&](const ServingLayout& layout, const ServingTask& asked) {
    return estimate_answers(shape, layout, asked, cluster);
  };
  for (int devices = 1; devices < cluster.devices; ++devices) {
    if (devices > cluster.domain && devices % cluster.domain != 0) {
      continue;
    }
    Cluster part = cluster;
    part.devices = devices;
    each_serving_layout(shape, part, options, [&](const ServingLayout& layout) {
      if (!problem_of(shape, layout, asked_of(task, layout)).empty()) {
        return;
      }
      const ServingEstimate answers = most_at_once(task, cluster, layout, keeps, estimate_of);
      if (!keeps(answers) || answers.memory.total() > cluster.usable_bytes()) {
        return;
      }
      const double answered =
          layout.instances * answers.concurrency / (task.output * answers.token_s);
      std::optional<ServingEstimate> best;
      for (const PromptPool& pool : pools) {
        ServingEstimate both = answers;
        both.prompts = pool;
        both.prompts.layout.instances = (cluster.devices - devices) / pool.layout.devices();
        const double read = both.prompts.layout.instances * pool.layout.dp / pool.prompt_s;
        both.first_token_s = first_token_s(pool.prompt_s, pool.layout.pp, 0) + answers.token_s;
        both.tokens_per_s_device = std::min(read, answered) * task.output / cluster.devices;
        const bool is_late = limits.first_token_s > 0 && both.first_token_s > limits.first_token_s;
        if (read > 0 && !is_late && (!best || more_tokens(both, *best))) {
          best = both;
        }
      }
      if (best) {
        sieve.take(*best, more_tokens);
      }
    });
  }
}

// Returns the larger ratio of the estimate's times over their limits.
double times_as_long(const ServingEstimate& estimate, const ServingLimits& limits) {
  return std::max(limits.first_token_s == 0 ? 0 : estimate.first_token_s / limits.first_token_s,
                  limits.token_s == 0 ? 0 : estimate.token_s / limits.token_s);
}

// For requests that arrive at random: searches for the fewest devices with which nine of ten
// requests keep the limits.
class ArrivalSearch {
 public:
  ArrivalSearch(const ModelShape& shape, const ServingTask& task, const ServingLimits& limits,
                const Cluster& cluster, const SearchOptions& options)
      : shape_(shape),
        task_(task),
        limits_(limits),
        cluster_(cluster),
        options_(options),
        sieve_(cluster, options) {}

  Ranking<ServingEstimate> ranking() && {
    each_serving_layout(shape_, cluster_, options_,
                        [&](const ServingLayout& layout) { try_layout(layout); });
    if (options_.tries_pools) {
      try_pools();
    }
    return std::move(sieve_).ranking();
  }

  // Returns the layout with its specified instances.
  Ranking<ServingEstimate> ranking_of(const ServingLayout& layout) && {
    ServingEstimate estimate = answers_of(layout);
    const RequestServer server = server_of(estimate, true);
    estimate.most_requests_per_s = most_per_s(server, layout);
    estimate.waits = waits_of(server, layout);
    take_waits(estimate);
    if (estimate.waits) {
      sieve_.take(estimate, faster);
    } else {
      sieve_.refuse_slow(estimate, task_.requests_per_s / estimate.most_requests_per_s);
    }
    return std::move(sieve_).ranking();
  }

 private:
  static bool faster(const ServingEstimate& a, const ServingEstimate& b) {
    return a.tokens_per_s_device != b.tokens_per_s_device
               ? a.tokens_per_s_device > b.tokens_per_s_device
               : a.waits->token_s.nine_of_ten < b.waits->token_s.nine_of_ten;
  }

  static double most_per_s(const RequestServer& server, const ServingLayout& layout) {
    return server.most_per_s() * layout.dp * layout.instances;
  }

  // Returns the estimate with as many concurrent answers as memory and the token limit allow.
  ServingEstimate answers_of(const ServingLayout& layout) const {
    return most_at_once(
        task_, cluster_, layout,
        [&](const ServingEstimate& next) {
          return limits_.token_s == 0 || next.token_s <= limits_.token_s;
        },
        [&](const ServingLayout& tried, const ServingTask& task) {
          return estimate_answers(shape_, tried, task, cluster_);
        });
  }

  RequestServer server_of(const ServingEstimate& answers, bool reads_prompts) const {
    const ServingLayout& layout = answers.layout;
    RequestServer server = answer_server(shape_, layout, task_, cluster_,
                                         static_cast<int>(answers.concurrency) / layout.dp);
    if (reads_prompts) {
      const RequestServer prompts =
          prompt_server(estimate_prompts(shape_, layout, task_, cluster_));
      server.prompt_s = prompts.prompt_s;
      server.first_extra_s = prompts.first_extra_s;
    }
    return server;
  }

  std::optional<Waits> waits_of(const RequestServer& server, const ServingLayout& layout) const {
    const double per_s = task_.requests_per_s / (static_cast<double>(layout.dp) * layout.instances);
    return per_s < server.most_per_s() ? std::optional(play_arrivals(server, per_s)) : std::nullopt;
  }

  // Returns the larger ratio over the limits, of the times that nine of ten requests keep.
  double times_as_long(const Waits& waits) const {
    return std::max(
        limits_.first_token_s == 0 ? 0 : waits.first_token_s.nine_of_ten / limits_.first_token_s,
        limits_.token_s == 0 ? 0 : waits.token_s.nine_of_ten / limits_.token_s);
  }

  // Gives the layout the fewest instances, up to `most`, that keep the limits. Unset if `most`
  // instances do not keep them.
  std::optional<Waits> fewest_instances(const RequestServer& server, ServingLayout& layout,
                                        int most) const {
    const auto keeping = [&](int instances) {
      layout.instances = instances;
      std::optional<Waits> waits = waits_of(server, layout);
      return waits && times_as_long(*waits) <= 1 ? waits : std::nullopt;
    };
    std::optional<Waits> best = most > 0 ? keeping(most) : std::nullopt;
    int enough = most;
    int too_few = static_cast<int>(
        std::min<double>(most, task_.requests_per_s / (server.most_per_s() * layout.dp)));
    while (best && enough - too_few > 1) {
      const int instances = std::midpoint(too_few, enough);
      if (const std::optional<Waits> waits = keeping(instances)) {
        best = waits;
        enough = instances;
      } else {
        too_few = instances;
      }
    }
    layout.instances = enough;
    return best;
  }

  // Returns how many instances the devices allow, within the size of the last layout kept.
  int most_instances(const ServingLayout& layout, int others = 0) const {
    const ServingEstimate* const last = sieve_.last();
    const int devices =
        last == nullptr
            ? cluster_.devices
            : std::min(cluster_.devices, last->layout.devices() + last->prompts.layout.devices());
    return (devices - others) / (layout.devices() / layout.instances);
  }

  void take_waits(ServingEstimate& estimate) const {
    const int devices = estimate.layout.devices() + estimate.prompts.layout.devices();
    estimate.tokens_per_s_device = task_.requests_per_s * task_.output / devices;
    if (estimate.waits) {
      estimate.first_token_s = estimate.waits->first_token_s.half;
      estimate.token_s = estimate.waits->token_s.half;
      estimate.parts = parts_of(estimate);
    }
  }

  // Returns the parts of a token for the mean number of concurrent answers.
  TokenParts parts_of(const ServingEstimate& estimate) const {
    const ServingLayout& layout = estimate.layout;
    const double at_once = std::max(1.0, std::round(estimate.waits->at_once));
    ServingTask task = task_;
    task.concurrency = at_once * layout.dp;
    TokenParts parts = estimate_answers(shape_, layout, task, cluster_).parts;
    if (estimate.prompts.layout.instances == 0) {
      parts.prompts =
          estimate_prompts(shape_, layout, task, cluster_).prompt_s * at_once / task.output;
    }
    return parts;
  }

  bool can_answer(const ServingLayout& layout, const ServingEstimate& answers) {
    if (limits_.token_s > 0 && answers.token_s > limits_.token_s) {
      sieve_.refuse_slow(answers, answers.token_s / limits_.token_s);
      return false;
    }
    if (answers.memory.total() > cluster_.usable_bytes()) {
      sieve_.take(answers, faster);
      return false;
    }
    return layout.instances > 0;
  }

  bool is_possible(const ServingLayout& layout) {
    return problem_of(shape_, layout, asked_of(task_, layout)).empty();
  }

  void try_layout(const ServingLayout& layout) {
    if (!is_possible(layout)) {
      sieve_.refuse("dimensions");
      return;
    }
    ServingEstimate answers = answers_of(layout);
    if (!can_answer(layout, answers)) {
      return;
    }
    const RequestServer server = server_of(answers, true);
    const int all = layout.instances;
    const int most = most_instances(layout);
    answers.waits = fewest_instances(server, answers.layout, most);
    answers.most_requests_per_s = most_per_s(server, answers.layout);
    take_waits(answers);
    if (answers.waits) {
      sieve_.take(answers, faster);
    } else if (most < all) {
      sieve_.refuse("more devices than those listed");
    } else {
      answers.waits = waits_of(server, answers.layout);
      take_waits(answers);
      sieve_.refuse_slow(answers, answers.waits
                                      ? times_as_long(*answers.waits)
                                      : 1e3 * task_.requests_per_s / answers.most_requests_per_s);
    }
  }

  // Gives each pool the fewest devices that keep its own limit. Requests leave the prompt pool more
  // evenly than they arrived, but answers are still simulated with random arrivals.
  void try_pools() {
    std::optional<PromptPool> best;
    Waits waits;
    for (PromptPool pool : prompt_pools(shape_, task_, cluster_, options_)) {
      const std::optional<Waits> kept = fewest_instances(
          prompt_server(pool), pool.layout, (cluster_.devices - 1) / pool.layout.devices());
      if (kept && (!best || pool.layout.devices() < best->layout.devices())) {
        best = pool;
        waits = *kept;
      }
    }
    if (!best) {
      return;
    }
    each_serving_layout(shape_, cluster_, options_, [&](const ServingLayout& layout) {
      if (!is_possible(layout)) {
        return;
      }
      ServingEstimate answers = answers_of(layout);
      if (!can_answer(layout, answers)) {
        return;
      }
      const RequestServer server = server_of(answers, false);
      answers.prompts = *best;
      answers.waits =
          fewest_instances(server, answers.layout, most_instances(layout, best->layout.devices()));
      if (answers.waits) {
        answers.waits->first_token_s = waits.first_token_s;
        answers.most_requests_per_s = std::min(most_per_s(server, answers.layout),
                                               most_per_s(prompt_server(*best), best->layout));
        take_waits(answers);
        sieve_.take(answers, faster);
      }
    });
  }

  const ModelShape& shape_;
  const ServingTask& task_;
  const ServingLimits& limits_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  Sieve<ServingEstimate> sieve_;
};

// Returns the estimate with the most concurrent requests that keep the limits; with one request if
// that already exceeds them.
ServingEstimate estimate_steady(const ModelShape& shape, const ServingLayout& layout,
                                const ServingTask& task, const ServingLimits& limits,
                                const Cluster& cluster) {
  return most_at_once(
      task, cluster, layout,
      [&](const ServingEstimate& estimate) { return times_as_long(estimate, limits) <= 1; },
      [&](const ServingLayout& tried, const ServingTask& asked) {
        return estimate_serving(shape, tried, asked, cluster);
      });
}

}  // namespace

Ranking<ServingEstimate> search_serving(const ModelShape& shape, const ServingTask& task,
                                        const ServingLimits& limits, const Cluster& cluster,
                                        const SearchOptions& options) {
  if (task.requests_per_s > 0) {
    return ArrivalSearch(shape, task, limits, cluster, options).ranking();
  }
  Sieve<ServingEstimate> sieve(cluster, options);
  each_serving_layout(shape, cluster, options, [&](const ServingLayout& layout) {
    if (!problem_of(shape, layout, asked_of(task, layout)).empty()) {
      sieve.refuse("dimensions");
      return;
    }
    const ServingEstimate estimate = estimate_steady(shape, layout, task, limits, cluster);
    if (const double times = times_as_long(estimate, limits); times <= 1) {
      sieve.take(estimate, more_tokens);
    } else {
      sieve.refuse_slow(estimate, times);
    }
  });
  if (options.tries_pools) {
    add_pools(shape, task, limits, cluster, options, sieve);
  }
  return std::move(sieve).ranking();
}

Ranking<ServingEstimate> rank_layout(const ModelShape& shape, const ServingLayout& layout,
                                     const ServingTask& task, const ServingLimits& limits,
                                     const Cluster& cluster) {
  const SearchOptions options{.most = 1};
  if (task.requests_per_s > 0) {
    return ArrivalSearch(shape, task, limits, cluster, options).ranking_of(layout);
  }
  Sieve<ServingEstimate> sieve(cluster, options);
  sieve.take(estimate_steady(shape, layout, task, limits, cluster), more_tokens);
  return std::move(sieve).ranking();
}

}  // namespace unisono::planner
