#include "train.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <unisono/parallel/mesh.hpp>
#include <unisono/parallel/sharded_state.hpp>

namespace transformer {
namespace {

namespace up = unisono::parallel;

class Trainer {
 public:
  Trainer(unisono::Communicator& world, const Layout& layout, const Config& config)
      : config_(config),
        mesh_(up::Mesh::create(world, layout.mesh)),
        groups_(groups_of(mesh_, layout, config)),
        local_{.config = config_, .layout = layout, .positions = {}},
        data_(mesh_.axes("rep,dp,cp,uly")),
        embedding_(groups_, local_),
        head_(groups_, local_) {
    local_.positions = groups_.context.positions(config.length);
    sequences_ = up::shard_range(config.batch, mesh_.size("rep,dp"), mesh_.coordinate("rep,dp"));
    local_.batch = sequences_.count;
    lists_ = all_weights(config, layout, groups_.tp.size());
    for (std::size_t layer = 0; layer < config.layers; ++layer) {
      blocks_.emplace_back(groups_, local_);
    }
    const bool hybrid = mesh_.size("rep") > 1;
    state_ = make_state(config, layout.stage, lists_,
                        {.data = mesh_.axes("dp,cp,uly"),
                         .replicas = hybrid ? &mesh_.axis("rep") : nullptr,
                         .model = groups_.tp.size() > 1 ? &groups_.tp : nullptr,
                         .tp = groups_.tp,
                         .leaves = leaves()});
  }

  double step(int number) {
    const std::vector<std::int32_t> all = draw_tokens(config_, number);
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
    for (std::size_t b = 0; b < sequences_.count; ++b) {
      for (const std::size_t place : local_.positions) {
        const std::size_t at = (sequences_.first + b) * (config_.length + 1) + place;
        tokens.push_back(all[at]);
        targets.push_back(all[at + 1]);
      }
    }
    std::vector<float> x = embedding_.forward(enter(0, 1), tokens);
    state_->release(0);
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      x = blocks_[layer].forward(enter(layer + 1, layer + 2), std::move(x), 0);
      state_->release(layer + 1);
    }
    const std::size_t last = lists_.size() - 1;
    Head::Result result = head_.run(enter(last, last - 1), x, targets, leaf_ready(last));
    leave(last);
    for (std::size_t layer = blocks_.size(); layer-- > 0;) {
      const Unit unit = enter(layer + 1, std::max<std::size_t>(layer, 1));
      result.gradient = blocks_[layer].backward_input(unit, std::move(result.gradient), 0);
      blocks_[layer].backward_weight(unit, 0, leaf_ready(layer + 1));
      leave(layer + 1);
    }
    // The gradient of the embedding does not need its weights.
    embedding_.backward(
        Unit(lists_[0], groups_.tp.size(), groups_.tp.rank(), {}, state_->gradients_f32(0)), tokens,
        result.gradient, leaf_ready(0));
    leave(0);
    state_->step();
    result.loss.all_reduce(data_);
    return result.loss.value() / static_cast<double>(config_.batch * config_.length);
  }

  Parts parts() {
    Parts all;
    for (std::size_t unit = 0; unit < lists_.size(); ++unit) {
      add_parts(*state_, unit, lists_[unit], groups_.tp, all);
    }
    return all;
  }

  std::map<std::string, std::vector<float>> weights() {
    std::map<std::string, std::vector<float>> all;
    for (std::size_t unit = 0; unit < lists_.size(); ++unit) {
      join_unit(*state_, unit, lists_[unit], groups_.tp, all);
    }
    return all;
  }

 private:
  // Leaves are sequences.
  std::vector<unisono::Leaves> leaves() {
    std::vector<unisono::Leaves> all;
    const int groups = local_.layout.same_bits ? mesh_.size("rep,dp") : 0;
    for (int group = 0; group < groups; ++group) {
      const up::Range together = up::shard_range(config_.batch, groups, group);
      for (int rank = 0; rank < mesh_.size("cp,uly"); ++rank) {
        const up::Range one = up::shard_range(together.count, mesh_.size("cp,uly"), rank);
        all.push_back({.first = together.first + one.first, .count = one.count});
      }
    }
    return all;
  }
  LeafReady leaf_ready(std::size_t unit) {
    return {.first = sequences_.first,
            .ready = [this, unit](const unisono::Leaves& node) { state_->leaf_ready(unit, node); }};
  }

  // Returns the weights of a unit, and starts to fetch the next unit's weights.
  Unit enter(std::size_t unit, std::size_t after) {
    const std::span<const float> weights = state_->parameters_f32(unit);
    state_->prefetch(after);
    return Unit(lists_[unit], groups_.tp.size(), groups_.tp.rank(), weights,
                state_->gradients_f32(unit));
  }

  // Reduces and releases a unit after its backward pass.
  void leave(std::size_t unit) {
    reduce_unit(*state_, unit, lists_[unit], groups_.tp);
    state_->release(unit);
  }

  Config config_;
  up::Mesh mesh_;
  Groups groups_;
  Local local_;
  unisono::Communicator& data_;
  Embedding embedding_;
  Head head_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Weight>> lists_;  // per unit
  up::Range sequences_;
  std::unique_ptr<up::ShardedState> state_;
};

}  // namespace

Groups groups_of(up::Mesh& mesh, const Layout& layout, const Config& config) {
  Groups groups{.tp = mesh.axis("tp"), .context = {.order = layout.order}};
  up::ContextAxes& context = groups.context;
  if (layout.same_bits) {
    context.blocks = config.blocks;
    groups.sequences = &mesh.axes("cp,uly");
    // Striped order has no blocks, and gathered keys have no gradients per block.
    if (layout.method == up::ContextMethod::all_gather ||
        layout.order == up::ContextOrder::striped) {
      context.heads = groups.sequences;
      return groups;
    }
  }
  context.outer = &mesh.axis("cp");
  context.heads = &mesh.axis("uly");
  context.method = layout.method;
  return groups;
}

std::vector<HeldWeight> held_weights(const Config& config, const Layout& layout) {
  const up::MeshShape mesh = up::MeshShape::parse(layout.mesh);
  const int tp = mesh.size("tp");
  const int ranks = mesh.ranks() / mesh.size("pp");  // the pipeline is the slowest axis
  std::vector<HeldWeight> all;
  const auto units = all_weights(config, layout, tp);
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    const int stage = layout.schedule.empty() ? 0 : pipeline_rank_of(config, layout, unit);
    for (const Weight& weight : units[unit]) {
      all.push_back(
          {.weight = weight, .first_rank = stage * ranks, .groups = ranks / tp, .tp = tp});
    }
  }
  return all;
}

Trained train(unisono::Communicator& world, const Layout& layout, const Config& config, int steps,
              const AfterStep& after) {
  if (!layout.schedule.empty()) {
    return train_pipeline(world, layout, config, steps, after);
  }
  Trainer trainer(world, layout, config);
  Trained result = run_steps(
      steps, [&](int step) { return trainer.step(step); }, after, [&] { return trainer.parts(); });
  result.weights = trainer.weights();
  return result;
}

Difference difference(const Trained& a, const Trained& b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Difference greatest;
  const auto take = [](double& most, double x, double y) {
    const double distance = std::abs(x - y);
    most = std::isnan(distance) ? kInfinite : std::max(most, distance);
  };
  if (a.losses.size() != b.losses.size() || a.weights.size() != b.weights.size()) {
    return {.loss = kInfinite, .weight = kInfinite};
  }
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    take(greatest.loss, a.losses[i], b.losses[i]);
  }
  for (const auto& [name, values] : a.weights) {
    const auto other = b.weights.find(name);
    if (other == b.weights.end() || other->second.size() != values.size()) {
      greatest.weight = kInfinite;
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      take(greatest.weight, values[i], other->second[i]);
    }
  }
  return greatest;
}

}  // namespace transformer
