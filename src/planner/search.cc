#include "planner/search.h"

#include <algorithm>
#include <cmath>

#include "planner/parts.h"
#include "planner/stacks.h"

namespace unisono::planner {
namespace {

// Tries the other choices for a stage whose axes are fixed.
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
        // Sizes differ between layouts, so only the common reason is counted.
        sieve.refuse(problem.find("batch") != std::string::npos ? "batch" : "dimensions");
        continue;
      }
      // Returns true if it fits; layouts that need less memory then only cost time.
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
        // Neither works well with a pipeline, each of whose microbatches would exchange all
        // weights.
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

std::string milliseconds(double seconds) {
  const double value = seconds * 1e3;
  const double scale = std::pow(10, 2 - std::floor(std::log10(std::max(value, 1e-9))));
  std::string text = std::to_string(std::round(value * scale) / scale);
  text.erase(text.find_last_not_of('0') + 1);
  if (!text.empty() && text.back() == '.') {
    text.pop_back();
  }
  return text + " ms";
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
  return "it saves " + milliseconds(difference) + "; " + std::string(most->name) + ": " +
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
  // Over uly all ranks exchange data with each other, which is slow over the links between domains.
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

// Returns the device time per token over an instance, which concurrent requests share.
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
  if (first.waits && second.waits) {
    const auto devices = [](const ServingEstimate& estimate) {
      return estimate.layout.devices() + estimate.prompts.layout.devices();
    };
    return devices(first) == devices(second)
               ? "nine of ten requests have a TPOT of " +
                     milliseconds(first.waits->token_s.nine_of_ten) + " instead of " +
                     milliseconds(second.waits->token_s.nine_of_ten)
               : "it needs " + std::to_string(devices(first)) +
                     (devices(first) == 1 ? " device" : " devices") + " instead of " +
                     std::to_string(devices(second));
  }
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
