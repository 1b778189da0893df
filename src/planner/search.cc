#include "planner/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "planner/parts.h"
#include "planner/stacks.h"

namespace unisono::planner {
namespace {

std::vector<int> divisors(int number, int most) {
  std::vector<int> result;
  for (int i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) {
      result.push_back(i);
    }
  }
  return result;
}

// Counts what is refused, and remembers which layout needs the least more memory.
template <typename Estimate>
class Sieve {
 public:
  Sieve(const Cluster& cluster, const SearchOptions& options)
      : cluster_(cluster), options_(options) {}

  void refuse(const std::string& why) {
    ++ranking_.tried;
    ++refused_[why];
  }

  // `times`: how many times as long as a limit of time it takes.
  void refuse_slow(const Estimate& estimate, double times) {
    if (estimate.memory.total() > cluster_.usable_bytes()) {
      refuse("memory");
      return;
    }
    refuse("limits of time");
    if (times < least_times_) {
      least_times_ = times;
      ranking_.nearest = estimate;
    }
  }

  // Whether it was fast enough to be kept.
  template <typename Faster>
  void take(const Estimate& estimate, const Faster& faster) {
    const double missing = estimate.memory.total() - cluster_.usable_bytes();
    if (missing > 0) {
      refuse("memory");
      if (missing < least_) {
        least_ = missing;
        ranking_.least_missing = text_of(estimate.layout);
      }
      return;
    }
    ++ranking_.tried;
    ++ranking_.fitting;
    std::vector<Estimate>& best = ranking_.best;
    const auto place = std::upper_bound(best.begin(), best.end(), estimate, faster);
    if (place == best.end() && best.size() >= options_.most) {
      return;
    }
    best.insert(place, estimate);
    if (best.size() > options_.most) {
      best.pop_back();
    }
  }

  Ranking<Estimate> ranking() && {
    for (const auto& [why, count] : refused_) {
      ranking_.refused.push_back({.why = why, .layouts = count});
    }
    std::ranges::stable_sort(ranking_.refused, std::ranges::greater{}, &Refusal::layouts);
    if (ranking_.best.empty() && std::isfinite(least_)) {
      ranking_.least_missing_bytes = least_;
    }
    return std::move(ranking_);
  }

 private:
  const Cluster& cluster_;
  const SearchOptions& options_;
  Ranking<Estimate> ranking_;
  std::map<std::string, std::int64_t> refused_;
  double least_ = std::numeric_limits<double>::infinity();
  double least_times_ = std::numeric_limits<double>::infinity();
};

// The axes of a stage are settled; what is left is chosen here.
void try_stage(const ModelShape& shape, const TrainingTask& task, const Cluster& cluster,
               const Layout& axes, const SearchOptions& options, TrainingModel& model,
               Sieve<TrainingEstimate>& sieve) {
  const Levels* const levels = options.levels;
  const auto estimate_of = [&](const Layout& layout) {
    TrainingEstimate estimate = model.estimate(layout);
    return levels == nullptr ? estimate : scaled(std::move(estimate), levels->times(layout));
  };
  const auto faster = [](const TrainingEstimate& a, const TrainingEstimate& b) {
    return a.step_s < b.step_s;
  };
  const int a_stage = (shape.layers + axes.pp - 1) / axes.pp;
  for (const int vp : axes.pp > 1 ? divisors(a_stage, 16) : std::vector<int>{1}) {
    for (int micro_batch = 1; micro_batch <= 16; micro_batch *= 2) {
      Layout layout = axes;
      layout.vp = vp;
      layout.micro_batch = micro_batch;
      if (const std::string problem = problem_of(shape, layout, task); !problem.empty()) {
        // Sizes differ from one layout to the next: what they have in common is told.
        sieve.refuse(problem.find("batch") != std::string::npos ? "batch" : "dimensions");
        continue;
      }
      // Returns whether it fits: whatever needs less memory only costs time then.
      const auto attempt = [&](const Layout& tried) {
        const TrainingEstimate estimate = estimate_of(tried);
        sieve.take(estimate, faster);
        return estimate.memory.total() <= cluster.usable_bytes();
      };
      bool fits = false;
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        layout.recompute = recompute;
        layout.zero = 1;
        fits = attempt(layout);
        // Neither goes well with a pipeline, whose microbatches would each exchange all weights.
        for (const int zero : {2, 3}) {
          if (layout.pp == 1 && layout.dp > 1 && (!fits || zero == 3)) {
            layout.zero = zero;
            fits = attempt(layout) || fits;
          }
        }
        if (fits) {
          break;
        }
      }
      for (const Offload offload : {Offload{.activations = true}, Offload{.optimiser = true},
                                    Offload{.activations = true, .optimiser = true}}) {
        if (!fits && options.tries_offload) {
          layout.recompute = offload.activations ? Recompute::none : Recompute::full;
          layout.zero = 1;
          layout.offload = offload;
          fits = attempt(layout);
        }
      }
    }
  }
}

// As many requests at once as memory and limits allow, by doubling.
template <typename Keeps, typename Estimator>
ServingEstimate most_at_once(ServingTask task, const Cluster& cluster, ServingEstimate estimate,
                             const Keeps& keeps, const Estimator& estimate_of) {
  constexpr int kMostAtOnce = 4096;  // of a group
  for (int more = 2; more <= kMostAtOnce; more *= 2) {
    task.concurrency = more * estimate.layout.dp;
    const ServingEstimate next = estimate_of(estimate.layout, task);
    if (next.memory.total() > cluster.usable_bytes() || !keeps(next)) {
      break;
    }
    estimate = next;
  }
  return estimate;
}

// All layouts of one instance that some of the devices have.
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

template <typename Parts>
std::string biggest_difference(std::span<const NamedPart<Parts>> names, const Parts& first,
                               const Parts& second) {
  const NamedPart<Parts>* most = nullptr;
  double difference = 0;
  for (const NamedPart<Parts>& part : names) {
    const double saved = second.*part.value - first.*part.value;
    if (saved > difference) {
      difference = saved;
      most = &part;
    }
  }
  if (most == nullptr) {
    return "they take equally long";
  }
  const auto milliseconds = [](double seconds) {
    const double value = seconds * 1e3;
    const double scale = std::pow(10, 2 - std::floor(std::log10(std::max(value, 1e-9))));
    std::string text = std::to_string(std::round(value * scale) / scale);
    text.erase(text.find_last_not_of('0') + 1);
    if (!text.empty() && text.back() == '.') {
      text.pop_back();
    }
    return text + " ms";
  };
  return "it saves " + milliseconds(difference) + " of " + std::string(most->name) + ": " +
         milliseconds(first.*most->value) + " instead of " + milliseconds(second.*most->value);
}

template <typename Parts>
std::string biggest(std::span<const NamedPart<Parts>> names, const Parts& parts) {
  const auto most = std::ranges::max_element(
      names, {}, [&](const NamedPart<Parts>& part) { return parts.*part.value; });
  const double share = parts.*most->value / parts.total() * 100;
  return std::string(most->name) + ", " + std::to_string(std::lround(share)) + " %";
}

}  // namespace

Ranking<TrainingEstimate> search_training(const ModelShape& shape, const TrainingTask& task,
                                          const Cluster& cluster, const SearchOptions& options) {
  Sieve<TrainingEstimate> sieve(cluster, options);
  TrainingModel model(shape, task, cluster);
  // All exchange with all over uly, which links between domains are slow for.
  const auto try_context = [&](Layout axes) {
    const int ranks = axes.cp;
    const int most = options.tries_uly ? std::max(1, cluster.domain / axes.tp) : 1;
    for (const int uly : divisors(ranks, most)) {
      axes.uly = uly;
      axes.cp = ranks / uly;
      if (shape.heads % (axes.tp * uly) == 0) {
        try_stage(shape, task, cluster, axes, options, model, sieve);
      }
    }
  };
  for (const int tp : divisors(cluster.devices, std::max(1, std::min(cluster.domain, 16)))) {
    options.progress("layouts with tp=" + std::to_string(tp));
    for (const int pp : divisors(cluster.devices / tp, std::min(shape.layers, 64))) {
      for (const int cp : divisors(cluster.devices / tp / pp, 64)) {
        Layout axes{.tp = tp,
                    .pp = pp,
                    .cp = cp,
                    .dp = cluster.devices / tp / pp / cp,
                    .sequence_parallel = !task.materialised_attention};
        if (!shape.has_experts()) {
          try_context(axes);
          continue;
        }
        for (const int ep : divisors(tp * cp * axes.dp, shape.experts)) {
          axes.ep = ep;
          try_context(axes);
        }
      }
    }
  }
  Ranking<TrainingEstimate> ranking = std::move(sieve).ranking();
  if (options.levels != nullptr) {
    for (TrainingEstimate& estimate : ranking.best) {
      estimate = at_level(model.estimate(estimate.layout), *options.levels);
    }
  }
  return ranking;
}

namespace {

// Instances that read prompts, of 1, 2, 4, ... devices. The cache of a prompt is sent to a device
// that answers while it is read.
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
        return;  // instances are counted where both pools share the devices
      }
      const PromptPool pool = estimate_prompts(shape, layout, asked, cluster);
      if (pool.memory.total() <= cluster.usable_bytes()) {
        pools.push_back(pool);
      }
    });
  }
  return pools;
}

// Divides the devices so that prompts and answers keep pace best.
template <typename Faster>
void add_pools(const ModelShape& shape, const ServingTask& task, const ServingLimits& limits,
               const Cluster& cluster, const SearchOptions& options, const Faster& faster,
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
      ServingTask asked = task;
      asked.concurrency = task.concurrency > 0 ? task.concurrency : layout.dp;
      if (!problem_of(shape, layout, asked).empty()) {
        return;
      }
      ServingEstimate answers = estimate_of(layout, asked);
      if (task.concurrency == 0) {
        answers = most_at_once(asked, cluster, answers, keeps, estimate_of);
      }
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
        if (read > 0 && !is_late && (!best || faster(both, *best))) {
          best = both;
        }
      }
      if (best) {
        sieve.take(*best, faster);
      }
    });
  }
}

}  // namespace

Ranking<ServingEstimate> search_serving(const ModelShape& shape, const ServingTask& task,
                                        const ServingLimits& limits, const Cluster& cluster,
                                        const SearchOptions& options) {
  Sieve<ServingEstimate> sieve(cluster, options);
  const auto faster = [](const ServingEstimate& a, const ServingEstimate& b) {
    return a.tokens_per_s_device > b.tokens_per_s_device;
  };
  const auto times_as_long = [&](const ServingEstimate& estimate) {
    return std::max(limits.first_token_s == 0 ? 0 : estimate.first_token_s / limits.first_token_s,
                    limits.token_s == 0 ? 0 : estimate.token_s / limits.token_s);
  };
  const auto keeps = [&](const ServingEstimate& estimate) { return times_as_long(estimate) <= 1; };
  const auto estimate_of = [&](const ServingLayout& layout, const ServingTask& asked) {
    return estimate_serving(shape, layout, asked, cluster);
  };
  each_serving_layout(shape, cluster, options, [&](const ServingLayout& layout) {
    ServingTask asked = task;
    asked.concurrency = task.concurrency > 0 ? task.concurrency : layout.dp;
    if (!problem_of(shape, layout, asked).empty()) {
      sieve.refuse("dimensions");
      return;
    }
    ServingEstimate estimate = estimate_of(layout, asked);
    if (task.concurrency == 0) {
      estimate = most_at_once(asked, cluster, estimate, keeps, estimate_of);
    }
    if (keeps(estimate)) {
      sieve.take(estimate, faster);
    } else {
      sieve.refuse_slow(estimate, times_as_long(estimate));
    }
  });
  if (options.tries_pools) {
    add_pools(shape, task, limits, cluster, options, faster, sieve);
  }
  return std::move(sieve).ranking();
}

namespace {

// What a token takes of all devices of an instance, as requests share them.
TokenParts device_time(const ServingEstimate& estimate) {
  TokenParts parts = estimate.parts;
  const double devices =
      static_cast<double>(estimate.layout.tp) * estimate.layout.pp * estimate.layout.dp;
  for (const NamedPart<TokenParts>& part : token_parts()) {
    parts.*part.value *= devices / estimate.concurrency;
  }
  return parts;
}

}  // namespace

std::string reason(const TrainingEstimate& first, const TrainingEstimate& second) {
  return biggest_difference(step_parts(), first.parts, second.parts);
}

std::string reason(const ServingEstimate& first, const ServingEstimate& second) {
  return biggest_difference(token_parts(), device_time(first), device_time(second)) +
         " (device time of a token)";
}

std::string binding(const TrainingEstimate& estimate) {
  return biggest(step_parts(), estimate.parts);
}

std::string binding(const ServingEstimate& estimate) {
  return biggest(token_parts(), estimate.parts);
}

}  // namespace unisono::planner
