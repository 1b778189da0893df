// Trains the model in a pipeline with the schedule that the layout names.
//
// The layers are divided evenly into the stages of a chain. The embedding belongs to the first
// stage, norm and logits to the last. If there are more stages than layers, some stages only
// forward their input. With DualPipe there are two copies of the model: two pipeline ranks hold the
// same layers, and their gradients are summed like those of data-parallel ranks.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <unisono/error.hpp>
#include <unisono/parallel/mesh.hpp>
#include <unisono/parallel/pipeline.hpp>
#include <utility>

#include "train.h"

namespace transformer {
namespace {

namespace up = unisono::parallel;

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void put(const std::vector<float>& values, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), values.data(), bytes.size());
}

// Returns the units of each stage. Unit 0 is the embedding, followed by the layers.
std::vector<std::vector<std::size_t>> units_of_stages(const up::PipelineSchedule& schedule,
                                                      std::size_t layers) {
  std::vector<std::vector<std::size_t>> units(static_cast<std::size_t>(schedule.stages()));
  for (const std::vector<int>& chain : schedule.chains()) {
    for (std::size_t place = 0; place < chain.size(); ++place) {
      auto& own = units[static_cast<std::size_t>(chain[place])];
      if (place == 0) {
        own.push_back(0);
      }
      const std::size_t end = layers * (place + 1) / chain.size();
      for (std::size_t layer = layers * place / chain.size(); layer < end; ++layer) {
        own.push_back(layer + 1);
      }
      if (place + 1 == chain.size()) {
        own.push_back(layers + 1);
      }
    }
  }
  return units;
}

up::PipelineSchedule schedule_of(const Layout& layout, int ranks) {
  return up::PipelineSchedule::by_name(
      layout.schedule,
      {.ranks = ranks, .microbatches = layout.microbatches, .chunks = layout.chunks});
}

// Returns the first pipeline rank that has a unit.
int first_holder(const up::PipelineSchedule& schedule,
                 const std::vector<std::vector<std::size_t>>& units, std::size_t unit) {
  int holder = schedule.ranks();
  for (std::size_t stage = 0; stage < units.size(); ++stage) {
    if (std::find(units[stage].begin(), units[stage].end(), unit) != units[stage].end()) {
      holder = std::min(holder, schedule.rank_of(static_cast<int>(stage)));
    }
  }
  return holder;
}

class PipelineTrainer {
 public:
  PipelineTrainer(unisono::Communicator& world, const Layout& layout, const Config& config)
      : config_(config),
        world_(world),
        mesh_(up::Mesh::create(world, layout.mesh)),
        schedule_(schedule_of(layout, mesh_.size("pp"))),
        units_(units_of_stages(schedule_, config.layers)),
        groups_(groups_of(mesh_, layout, config)),
        local_{.config = config_, .layout = layout, .positions = {}},
        embedding_(groups_, local_),
        head_(groups_, local_) {
    local_.positions = groups_.context.positions(config.length);
    sequences_ = up::shard_range(config.batch, mesh_.size("dp"), mesh_.coordinate("dp"));
    const auto microbatches = static_cast<std::size_t>(layout.microbatches);
    if (config.batch % (microbatches * static_cast<std::size_t>(mesh_.size("dp"))) != 0 ||
        mesh_.size("rep") > 1) {
      throw unisono::Error(unisono::ErrorCode::config,
                           "layout \"" + layout.text + "\": " + std::to_string(config.batch) +
                               " sequences cannot be divided evenly\nwith a pipeline, choose dp "
                               "and m whose product divides them, and rep=1");
    }
    local_.batch = sequences_.count / microbatches;
    if (layout.same_bits && groups_.context.ranks() > 1 && local_.batch > 1) {
      throw unisono::Error(unisono::ErrorCode::config,
                           "layout \"" + layout.text + "\": ranks of a context cannot share " +
                               std::to_string(local_.batch) +
                               " sequences of a microbatch\nfor the same bits with cp or uly, "
                               "choose m so that a microbatch is one sequence");
    }
    make_units();
    make_pipeline();
  }

  double step(int number) {
    const std::vector<std::int32_t> all = draw_tokens(config_, number);
    data_of_.assign(static_cast<std::size_t>(schedule_.microbatches()), {});
    for (std::size_t b = 0; b < sequences_.count; ++b) {
      Microbatch& one = data_of_[b / local_.batch];
      for (const std::size_t place : local_.positions) {
        const std::size_t at = (sequences_.first + b) * (config_.length + 1) + place;
        one.tokens.push_back(all[at]);
        one.targets.push_back(all[at + 1]);
      }
    }
    loss_ = {};
    // Ranks that hold the same units gather them in the same order, whatever the order of their
    // stages.
    parts_.clear();
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const std::span<const float> weights = state_->parameters_f32(i);
      parts_.emplace(own_[i], Unit(lists_[i], groups_.tp.size(), groups_.tp.rank(), weights,
                                   state_->gradients_f32(i)));
    }
    pipeline_->run_step();
    for (std::size_t i = own_.size(); i-- > 0;) {
      reduce_unit(*state_, i, lists_[i], groups_.tp);
      state_->release(i);
    }
    state_->step();
    // All tensor-parallel ranks have the same loss, so only one adds it.
    unisono::ExactSum loss = groups_.tp.rank() == 0 ? loss_ : unisono::ExactSum();
    loss.all_reduce(world_);
    return loss.value() / static_cast<double>(config_.batch * config_.length);
  }

  Parts parts() {
    Parts all;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      add_parts(*state_, i, lists_[i], groups_.tp, all);
    }
    return all;
  }

  std::map<std::string, std::vector<float>> weights() {
    std::map<std::string, std::vector<float>> all;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      join_unit(*state_, i, lists_[i], groups_.tp, all);
    }
    // The pipeline is the slowest axis: the first rank of a stage has coordinate 0 on all other
    // axes.
    const int stride = world_.size() / mesh_.size("pp");
    const auto units = all_weights(config_, local_.layout, groups_.tp.size());
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      for (const Weight& weight : units[unit]) {
        std::vector<float>& values = all[weight.name];
        values.resize(weight.rows * weight.columns);
        world_.broadcast(values, first_holder(schedule_, units_, unit) * stride);
      }
    }
    return all;
  }

 private:
  struct Microbatch {
    std::vector<std::int32_t> tokens = {};
    std::vector<std::int32_t> targets = {};
    std::vector<float> gradient = {};  // on the way back: set by the head, used by the embedding
  };

  std::vector<std::size_t> units_of_rank(int rank) const {
    std::vector<std::size_t> units;
    for (const int stage : schedule_.stages_of(rank)) {
      const auto& more = units_[static_cast<std::size_t>(stage)];
      units.insert(units.end(), more.begin(), more.end());
    }
    std::sort(units.begin(), units.end());
    return units;
  }

  // Returns the first rank that holds the same units as `rank`; without DualPipe, `rank` itself. If
  // there are fewer units than ranks, it may hold none.
  int first_like(int rank) const {
    const bool is_double = schedule_.chains().size() > 1;
    return is_double ? std::min(rank, schedule_.ranks() - 1 - rank) : rank;
  }

  void make_units() {
    const int rank = mesh_.coordinate("pp");
    own_ = units_of_rank(rank);
    const auto units = all_weights(config_, local_.layout, groups_.tp.size());
    for (const std::size_t unit : own_) {
      lists_.push_back(units[unit]);
      if (unit > 0 && unit <= config_.layers) {
        blocks_.emplace(unit, Block(groups_, local_));
      }
    }
    const int tp = mesh_.coordinate("tp");
    data_ = world_.split(first_like(rank) * mesh_.size("tp") + tp, world_.rank());
    model_ = world_.split(data_->rank(), world_.rank());
    state_ = make_state(
        config_, local_.layout.stage, lists_,
        {.data = *data_, .model = model_->size() > 1 ? &*model_ : nullptr, .tp = groups_.tp});
    for (std::size_t i = 0; local_.layout.same_bits && i < own_.size(); ++i) {
      state_->set_leaves(i, leaves_of(own_[i]));
    }
  }

  // Returns the sequences whose gradients each rank with this unit adds. With DualPipe, two ranks
  // have the unit, each for the microbatches of one direction.
  std::vector<unisono::Leaves> leaves_of(std::size_t unit) const {
    const up::MeshShape& shape = mesh_.shape();
    const auto size = [](int count) { return static_cast<std::size_t>(count); };
    const auto chains = schedule_.chains();
    std::vector<unisono::Leaves> all;
    for (int rank = 0; rank < world_.size(); ++rank) {
      const int place = shape.coordinate(rank, "pp");
      if (first_like(place) != first_like(mesh_.coordinate("pp")) ||
          shape.coordinate(rank, "tp") != mesh_.coordinate("tp")) {
        continue;
      }
      const up::Range sequences =
          up::shard_range(config_.batch, shape.size("dp"), shape.coordinate(rank, "dp"));
      const up::Range mine =
          up::shard_range(local_.batch, shape.size("cp,uly"), shape.coordinate(rank, "cp,uly"));
      unisono::Leaves leaves;
      for (std::size_t chain = 0; chain < chains.size(); ++chain) {
        const std::size_t microbatches = size(schedule_.microbatches()) / chains.size();
        for (const int stage : chains[chain]) {
          const auto& units = units_[size(stage)];
          if (schedule_.rank_of(stage) == place &&
              std::find(units.begin(), units.end(), unit) != units.end()) {
            leaves = {.first = sequences.first + chain * microbatches * local_.batch + mine.first,
                      .count = microbatches * mine.count};
          }
        }
      }
      all.push_back(leaves);
    }
    return all;
  }

  LeafReady leaf_ready(std::size_t unit, const up::PipelinePass& pass) {
    const auto index =
        static_cast<std::size_t>(std::find(own_.begin(), own_.end(), unit) - own_.begin());
    const std::size_t first =
        sequences_.first + static_cast<std::size_t>(pass.microbatch) * local_.batch;
    return {.first = first, .ready = [this, index](const unisono::Leaves& node) {
              state_->leaf_ready(index, node);
            }};
  }

  void make_pipeline() {
    const up::Range rows = local_.region(config_.width).outside(groups_.tp);
    const up::TensorSpec spec{.shape = {rows.count, config_.width}};
    std::vector<up::PipelineStage> stages;
    for (const int stage : schedule_.stages_of(mesh_.coordinate("pp"))) {
      stages.push_back({.stage = stage, .input = {}, .output = spec});
    }
    pipeline_.emplace(
        mesh_.axis("pp"), schedule_, std::move(stages),
        up::PipelineCallbacks{
            .forward = [this](const up::PipelinePass& pass) { forward(pass); },
            .backward =
                [this](const up::PipelinePass& pass) {
                  backward_input(pass);
                  backward_weight(pass);
                },
            .backward_input = [this](const up::PipelinePass& pass) { backward_input(pass); },
            .backward_weight = [this](const up::PipelinePass& pass) { backward_weight(pass); }});
  }

  const std::vector<std::size_t>& units_of(const up::PipelinePass& pass) const {
    return units_[static_cast<std::size_t>(pass.stage)];
  }

  void forward(const up::PipelinePass& pass) {
    Microbatch& data = data_of_[static_cast<std::size_t>(pass.microbatch)];
    std::vector<float> x = floats_of(pass.input);
    for (const std::size_t unit : units_of(pass)) {
      const Unit& parts = parts_.at(unit);
      if (unit == 0) {
        x = embedding_.forward(parts, data.tokens);
      } else if (unit <= config_.layers) {
        x = blocks_.at(unit).forward(parts, std::move(x), pass.microbatch);
      } else {
        Head::Result result = head_.run(parts, x, data.targets, leaf_ready(unit, pass));
        loss_.add(result.loss);
        data.gradient = std::move(result.gradient);
      }
    }
    if (pass.output_spec != nullptr) {
      put(x, pass.output);
    }
  }

  void backward_input(const up::PipelinePass& pass) {
    Microbatch& data = data_of_[static_cast<std::size_t>(pass.microbatch)];
    std::vector<float> gradient =
        pass.output_spec == nullptr ? std::move(data.gradient) : floats_of(pass.output_gradient);
    const std::vector<std::size_t>& units = units_of(pass);
    for (std::size_t i = units.size(); i-- > 0;) {
      if (units[i] > 0 && units[i] <= config_.layers) {
        gradient = blocks_.at(units[i]).backward_input(parts_.at(units[i]), std::move(gradient),
                                                       pass.microbatch);
      }
    }
    if (pass.input_spec != nullptr) {
      put(gradient, pass.input_gradient);
    } else {
      data.gradient = std::move(gradient);
    }
  }

  void backward_weight(const up::PipelinePass& pass) {
    Microbatch& data = data_of_[static_cast<std::size_t>(pass.microbatch)];
    for (const std::size_t unit : units_of(pass)) {
      if (unit == 0) {
        embedding_.backward(parts_.at(unit), data.tokens, data.gradient, leaf_ready(unit, pass));
      } else if (unit <= config_.layers) {
        blocks_.at(unit).backward_weight(parts_.at(unit), pass.microbatch, leaf_ready(unit, pass));
      }
    }
  }

  Config config_;
  unisono::Communicator& world_;
  up::Mesh mesh_;
  up::PipelineSchedule schedule_;
  std::vector<std::vector<std::size_t>> units_;  // of each stage
  Groups groups_;
  Local local_;
  Embedding embedding_;
  Head head_;
  up::Range sequences_;
  std::vector<std::size_t> own_;            // units of this rank
  std::vector<std::vector<Weight>> lists_;  // per unit
  std::map<std::size_t, Block> blocks_;     // by unit number
  std::map<std::size_t, Unit> parts_;
  std::vector<Microbatch> data_of_;
  unisono::ExactSum loss_;
  std::optional<unisono::Communicator> data_;
  std::optional<unisono::Communicator> model_;
  std::unique_ptr<up::ShardedState> state_;
  std::optional<up::Pipeline> pipeline_;
};

}  // namespace

int pipeline_rank_of(const Config& config, const Layout& layout, std::size_t unit) {
  const up::PipelineSchedule schedule =
      schedule_of(layout, up::MeshShape::parse(layout.mesh).size("pp"));
  return first_holder(schedule, units_of_stages(schedule, config.layers), unit);
}

Trained train_pipeline(unisono::Communicator& world, const Layout& layout, const Config& config,
                       int steps, const AfterStep& after) {
  PipelineTrainer trainer(world, layout, config);
  Trained result = run_steps(
      steps, [&](int step) { return trainer.step(step); }, after, [&] { return trainer.parts(); });
  result.weights = trainer.weights();
  return result;
}

}  // namespace transformer
