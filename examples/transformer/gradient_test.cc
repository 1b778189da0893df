// Compares the gradients of a GPT layer and of a Llama layer with differences of their outputs.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <unisono/unisono.hpp>
#include <vector>

#include "model.h"

namespace transformer {
namespace {

namespace up = unisono::parallel;

class Layer {
 public:
  explicit Layer(bool llama)
      : config_{.width = 16,
                .heads = 4,
                .key_value_heads = 2,
                .hidden = 24,
                .length = 6,
                .batch = 2,
                .llama = llama},
        layout_(parse_layout("tp=1")),
        world_(unisono::Communicator::connect()),
        mesh_(up::Mesh::create(world_, layout_.mesh)),
        groups_(groups_of(mesh_, layout_, config_)),
        local_{.config = config_,
               .layout = layout_,
               .batch = config_.batch,
               .positions = groups_.context.positions(config_.length)},
        block_(groups_, local_),
        list_(block_weights(config_, layout_, 1, 0)) {
    std::size_t count = 0;
    for (const Weight& weight : list_) {
      count += weight.rows * weight.columns;
    }
    weights = random_values(count);
    input = random_values(local_.rows() * config_.width);
    slopes_ = random_values(input.size());
  }

  double loss() {
    const std::vector<float> out = block_.forward(unit({}), input, 0);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      sum += static_cast<double>(out[i]) * static_cast<double>(slopes_[i]);
    }
    return sum;
  }

  struct Gradients {
    std::vector<float> input = {};
    std::vector<float> weights = {};
  };
  Gradients backward() {
    Gradients all{.weights = std::vector<float>(weights.size())};
    block_.forward(unit(all.weights), input, 0);
    all.input = block_.backward_input(unit(all.weights), slopes_, 0);
    block_.backward_weight(unit(all.weights), 0, {.ready = [](const unisono::Leaves&) {}});
    return all;
  }

  std::vector<float> weights;
  std::vector<float> input;

 private:
  Unit unit(std::span<float> gradients) const { return {list_, 1, 0, weights, gradients}; }
  std::vector<float> random_values(std::size_t count) {
    std::normal_distribution<float> normal(0.0F, 0.4F);
    std::vector<float> values(count);
    for (float& value : values) {
      value = normal(random_);
    }
    return values;
  }

  std::mt19937 random_{7};
  Config config_;
  Layout layout_;
  unisono::Communicator world_;
  up::Mesh mesh_;
  Groups groups_;
  Local local_;
  Block block_;
  std::vector<Weight> list_;
  std::vector<float> slopes_;
};

class Gradient : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Llama, Gradient, ::testing::Bool());

TEST_P(Gradient, IsTheSlopeOfTheOutput) {
  Layer layer(GetParam());
  const Layer::Gradients gradients = layer.backward();
  constexpr float kStep = 4e-3F;
  const auto compare = [&](std::vector<float>& values, const std::vector<float>& slopes,
                           const char* what) {
    for (std::size_t i = 0; i < values.size(); i += 3) {
      const float value = values[i];
      values[i] = value + kStep;
      const double above = layer.loss();
      values[i] = value - kStep;
      const double below = layer.loss();
      values[i] = value;
      const double slope = (above - below) / (2 * static_cast<double>(kStep));
      ASSERT_NEAR(static_cast<double>(slopes[i]), slope, 4e-3 + 1e-2 * std::abs(slope))
          << what << " " << i;
    }
  };
  compare(layer.input, gradients.input, "input");
  compare(layer.weights, gradients.weights, "weight");
}

}  // namespace
}  // namespace transformer
