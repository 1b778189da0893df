// A model of linear layers with max(0, x) between them, in integers that wrap: sums do not depend
// on the order, so every schedule must give the same bits as one process.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel::testing {

using Words = std::vector<std::uint64_t>;

struct Layer {
  std::size_t in = 1;
  std::size_t out = 1;
  Words weights = {};  // out rows of length in
  Words gradient = {};

  // out: max(0, weights * input), for each sample.
  void forward(std::span<const std::uint64_t> input, std::span<std::uint64_t> output) const {
    for (std::size_t i = 0; i < output.size(); ++i) {
      const auto sum = static_cast<std::int64_t>(row(input, i));
      output[i] = sum > 0 ? static_cast<std::uint64_t>(sum) : 0;
    }
  }
  // Returns the gradient before the max(0, x).
  std::uint64_t masked(std::span<const std::uint64_t> input, std::size_t i,
                       std::uint64_t gradient_of_output) const {
    return static_cast<std::int64_t>(row(input, i)) > 0 ? gradient_of_output : 0;
  }
  void backward_input(std::span<const std::uint64_t> input,
                      std::span<const std::uint64_t> output_gradient,
                      std::span<std::uint64_t> input_gradient) const {
    std::fill(input_gradient.begin(), input_gradient.end(), 0);
    for (std::size_t i = 0; i < output_gradient.size() && !input_gradient.empty(); ++i) {
      const std::uint64_t value = masked(input, i, output_gradient[i]);
      for (std::size_t k = 0; k < in; ++k) {
        input_gradient[i / out * in + k] += weights[i % out * in + k] * value;
      }
    }
  }
  void backward_weight(std::span<const std::uint64_t> input,
                       std::span<const std::uint64_t> output_gradient) {
    for (std::size_t i = 0; i < output_gradient.size(); ++i) {
      const std::uint64_t value = masked(input, i, output_gradient[i]);
      for (std::size_t k = 0; k < in; ++k) {
        gradient[i % out * in + k] += input[i / out * in + k] * value;
      }
    }
  }

 private:
  std::uint64_t row(std::span<const std::uint64_t> input, std::size_t i) const {
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < in; ++k) {
      sum += weights[i % out * in + k] * input[i / out * in + k];
    }
    return sum;
  }
};

// Layers of different widths, so that every boundary has its own shape.
class Model {
 public:
  static constexpr std::size_t kBatch = 3;

  Model(int layers, std::size_t wide = 1) {
    for (int i = 0; i < layers; ++i) {
      Layer layer{.in = width(i, layers) * wide, .out = width(i + 1, layers) * wide};
      for (std::size_t k = 0; k < layer.in * layer.out; ++k) {
        layer.weights.push_back((k * 7 + static_cast<std::size_t>(i) * 13) % 11 - 5);
      }
      layer.gradient.resize(layer.weights.size());
      layers_.push_back(std::move(layer));
    }
  }
  Layer& layer(int i) { return layers_[static_cast<std::size_t>(i)]; }
  int layers() const { return static_cast<int>(layers_.size()); }
  TensorSpec spec_before(int i) { return {.dtype = Dtype::u64, .shape = {kBatch, layer(i).in}}; }
  TensorSpec spec_behind(int i) { return {.dtype = Dtype::u64, .shape = {kBatch, layer(i).out}}; }
  Words data(int microbatch, int step) {
    Words words(kBatch * layers_.front().in);
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] =
          (i * 5 + static_cast<std::size_t>(microbatch) * 3 + static_cast<std::size_t>(step)) % 7;
    }
    return words;
  }
  // The gradient of half the squared distance from the target.
  static Words loss_gradient(Words output, int microbatch) {
    for (std::uint64_t& value : output) {
      value -= static_cast<std::uint64_t>(microbatch) + 1;
    }
    return output;
  }
  void update() {
    for (Layer& layer : layers_) {
      for (std::size_t i = 0; i < layer.weights.size(); ++i) {
        layer.weights[i] -= std::exchange(layer.gradient[i], 0);
      }
    }
  }
  // Computes in one process, one microbatch after the other, and adds to the gradients.
  void accumulate(int microbatches, int step) {
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      std::vector<Words> values = {data(microbatch, step)};
      for (Layer& layer : layers_) {
        Words output(kBatch * layer.out);
        layer.forward(values.back(), output);
        values.push_back(std::move(output));
      }
      Words gradient = loss_gradient(values.back(), microbatch);
      for (int i = layers() - 1; i >= 0; --i) {
        const Words& input = values[static_cast<std::size_t>(i)];
        layer(i).backward_weight(input, gradient);
        Words before(input.size());
        layer(i).backward_input(input, gradient, before);
        gradient = std::move(before);
      }
    }
  }
  Words all_gradients() const {
    Words all;
    for (const Layer& layer : layers_) {
      all.insert(all.end(), layer.gradient.begin(), layer.gradient.end());
    }
    return all;
  }
  void set_gradients(const Words& all) {
    auto next = all.begin();
    for (Layer& layer : layers_) {
      for (std::uint64_t& value : layer.gradient) {
        value = *next++;
      }
    }
  }
  bool operator==(const Model& other) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].weights != other.layers_[i].weights) {
        return false;
      }
    }
    return true;
  }

 private:
  static std::size_t width(int i, int layers) {
    return i == 0 || i == layers ? 4 : 2 + static_cast<std::size_t>(i) % 5;
  }

  std::vector<Layer> layers_;
};

inline std::span<const std::uint64_t> words(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint64_t*>(bytes.data()), bytes.size() / 8};
}
inline std::span<std::uint64_t> words(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::uint64_t*>(bytes.data()), bytes.size() / 8};
}

// The stages of one rank as layers of the model, with the runner's callbacks. `layer_of`: the layer
// of each stage, because two chains have the same layers.
class ModelOnRank {
 public:
  ModelOnRank(Model& model, std::vector<int> layer_of)
      : model_(model), layer_of_(std::move(layer_of)) {}

  int step = 0;

  std::vector<PipelineStage> stages(const PipelineSchedule& schedule, int rank) {
    std::vector<PipelineStage> stages;
    for (const int stage : schedule.stages_of(rank)) {
      const int layer = layer_at(stage);
      stages.push_back({.stage = stage});
      if (layer + 1 < model_.layers()) {
        stages.back().output = model_.spec_behind(layer);
      }
      if (layer > 0 && layer % 2 == 1) {  // every second stage leaves it to the previous one
        stages.back().input = model_.spec_before(layer);
      }
    }
    return stages;
  }
  PipelineCallbacks callbacks() {
    return {.forward = [this](const PipelinePass& pass) { forward(pass); },
            .backward =
                [this](const PipelinePass& pass) {
                  backward_input(pass);
                  backward_weight(pass);
                },
            .backward_input = [this](const PipelinePass& pass) { backward_input(pass); },
            .backward_weight = [this](const PipelinePass& pass) { backward_weight(pass); }};
  }

 private:
  int layer_at(int stage) const { return layer_of_[static_cast<std::size_t>(stage)]; }
  Words input_of(const PipelinePass& pass) {
    const auto given = words(pass.input);
    return layer_at(pass.stage) == 0 ? model_.data(pass.microbatch, step)
                                     : Words(given.begin(), given.end());
  }
  void forward(const PipelinePass& pass) {
    const Layer& layer = model_.layer(layer_at(pass.stage));
    if (!pass.output.empty()) {
      layer.forward(input_of(pass), words(pass.output));
      return;
    }
    Words output(Model::kBatch * layer.out);
    layer.forward(input_of(pass), output);
    loss_[pass.microbatch] = Model::loss_gradient(output, pass.microbatch);
  }
  Words gradient_of(const PipelinePass& pass) {
    const auto given = words(pass.output_gradient);
    return layer_at(pass.stage) + 1 == model_.layers() ? loss_.at(pass.microbatch)
                                                       : Words(given.begin(), given.end());
  }
  void backward_input(const PipelinePass& pass) {
    model_.layer(layer_at(pass.stage))
        .backward_input(input_of(pass), gradient_of(pass), words(pass.input_gradient));
  }
  void backward_weight(const PipelinePass& pass) {
    model_.layer(layer_at(pass.stage)).backward_weight(input_of(pass), gradient_of(pass));
  }

  Model& model_;
  std::vector<int> layer_of_;
  std::map<int, Words> loss_;  // gradients of the last layer's outputs, by microbatch
};

}  // namespace unisono::parallel::testing
