// Parts common to all ways of training: the data, the optimiser, and the resulting weights.
#include <algorithm>
#include <chrono>
#include <random>
#include <span>

#include "train.h"

namespace transformer {

namespace up = unisono::parallel;

std::size_t next_token(std::size_t token, std::size_t vocabulary) {
  return (token * 5 + 3) % vocabulary;
}

// Three of four tokens follow from the previous token; the others are random.
std::vector<std::int32_t> draw_tokens(const Config& config, int step) {
  std::mt19937_64 random(config.seed * 1000003U + static_cast<std::uint64_t>(step));
  std::vector<std::int32_t> tokens;
  for (std::size_t b = 0; b < config.batch; ++b) {
    std::uint64_t token = random() % config.vocabulary;
    for (std::size_t s = 0; s <= config.length; ++s) {
      tokens.push_back(static_cast<std::int32_t>(token));
      token =
          random() % 4 == 0 ? random() % config.vocabulary : next_token(token, config.vocabulary);
    }
  }
  return tokens;
}

Trained run_steps(int steps, const std::function<double(int)>& step, const AfterStep& after,
                  const std::function<Parts()>& parts) {
  Trained result;
  std::vector<double> times;
  for (int number = 0; number < steps; ++number) {
    const auto begin = std::chrono::steady_clock::now();
    result.losses.push_back(step(number));
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    if (after) {
      after(number + 1, result.losses.back(), parts);
    }
  }
  std::sort(times.begin(), times.end());
  result.step_ms = times.empty() ? 0 : times[times.size() / 2];
  return result;
}

std::unique_ptr<up::ShardedState> make_state(const Config& config, int stage,
                                             const std::vector<std::vector<Weight>>& lists,
                                             const Axes& axes) {
  const int ranks = axes.tp.size();
  const int rank = axes.tp.rank();
  std::vector<std::vector<up::Parameter>> units;
  for (const std::vector<Weight>& list : lists) {
    std::vector<up::Parameter> unit;
    for (const Weight& weight : list) {
      unit.push_back({.name = weight.name,
                      .count = local_count(weight, ranks, rank),
                      .decays = !weight.is_vector(),
                      .counted = weight.cut != Weight::Cut::none || rank == 0});
    }
    units.push_back(std::move(unit));
  }
  auto state = std::make_unique<up::ShardedState>(
      axes.data, std::move(units),
      up::ShardedOptions{.stage = stage,
                         .op = unisono::ReduceOp::sum,
                         .optimizer = {.rate = config.rate, .epsilon = 1e-5, .decay = 0.1},
                         .max_norm = config.max_norm,
                         .replicas = axes.replicas,
                         .model = axes.model,
                         .leaves = axes.leaves});
  for (std::size_t unit = 0; unit < lists.size(); ++unit) {
    std::vector<float> flat;
    for (const Weight& weight : lists[unit]) {
      const std::vector<float> part = cut(weight, initial(weight, config.seed), ranks, rank);
      flat.insert(flat.end(), part.begin(), part.end());
    }
    state->set(unit, flat);
  }
  return state;
}

void reduce_unit(up::ShardedState& state, std::size_t unit, const std::vector<Weight>& list,
                 unisono::Communicator& tp) {
  const Unit parts(list, tp.size(), tp.rank(), {}, state.gradients_f32(unit));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_summed && tp.size() > 1) {
      tp.all_reduce(parts.gradient(i), unisono::sum);
    }
  }
  state.gradients_ready(unit);
}

void add_parts(up::ShardedState& state, std::size_t unit, const std::vector<Weight>& list,
               unisono::Communicator& tp, Parts& parts) {
  const Unit local(list, tp.size(), tp.rank(), state.parameters_f32(unit), {});
  for (std::size_t i = 0; i < list.size(); ++i) {
    parts[list[i].name] = local.weight(i);
  }
}

void join_unit(up::ShardedState& state, std::size_t unit, const std::vector<Weight>& list,
               unisono::Communicator& tp, std::map<std::string, std::vector<float>>& all) {
  const std::vector<float> flat = state.whole(unit);
  const Unit parts(list, tp.size(), tp.rank(), flat, {});
  for (std::size_t i = 0; i < list.size(); ++i) {
    all[list[i].name] = join(list[i], parts.weight(i), tp);
  }
}

}  // namespace transformer
