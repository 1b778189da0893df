#include "encoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "compute.h"

namespace llm {
namespace {

namespace up = unisono::parallel;

up::Range whole(std::size_t count) {
  return {.first = 0, .count = count};
}

void add_to(std::span<const float> added, std::span<float> x) {
  std::ranges::transform(x, added, x.begin(), std::plus());
}

// Returns the mean of some rows, scaled to length 1. Their sum has the same direction.
std::vector<float> direction(std::span<const float> rows, std::size_t width) {
  std::vector<float> sum(width);
  for (; !rows.empty(); rows = rows.subspan(width)) {
    add_to(rows.first(width), sum);
  }
  double squares = 0;
  for (const float value : sum) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  for (float& value : sum) {
    value = static_cast<float>(static_cast<double>(value) / std::sqrt(squares));
  }
  return sum;
}

}  // namespace

Encoder::Encoder(unisono::Communicator& tp, const EncoderWeights& weights, Precision precision)
    : tp_(tp),
      weights_(weights),
      precision_(precision),
      shape_(weights.shape()),
      share_(up::head_share(shape_.heads, shape_.heads, tp.size(), tp.rank())),
      hidden_(up::shard_range(shape_.hidden, tp.size(), tp.rank())),
      first_norm_(norm("embeddings")) {
  const up::Range features{.first = share_.query.first * shape_.dim,
                           .count = share_.query.count * shape_.dim};
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i) + ".";
    layers_.push_back({.q = cut_outputs(layer + "attention.self.query", features),
                       .k = cut_outputs(layer + "attention.self.key", features),
                       .v = cut_outputs(layer + "attention.self.value", features),
                       .o = cut_inputs(layer + "attention.output.dense", features),
                       .up = cut_outputs(layer + "intermediate.dense", hidden_),
                       .down = cut_inputs(layer + "output.dense", hidden_),
                       .after_attention = norm(layer + "attention.output"),
                       .after_mlp = norm(layer + "output")});
  }
}

Encoder::Linear Encoder::cut_outputs(const std::string& name, up::Range outputs) {
  return {.weight = Matrix(weights_.read(name + ".weight", outputs, whole(shape_.width)),
                           outputs.count, precision_, arena_),
          .bias = weights_.read(name + ".bias", whole(1), outputs)};
}

Encoder::Linear Encoder::cut_inputs(const std::string& name, up::Range inputs) {
  return {.weight = Matrix(weights_.read(name + ".weight", whole(shape_.width), inputs),
                           shape_.width, precision_, arena_),
          .bias = weights_.read(name + ".bias", whole(1), whole(shape_.width))};
}

Encoder::Norm Encoder::norm(const std::string& name) const {
  const auto read = [&](const char* part) {
    return weights_.read(name + ".LayerNorm." + part, whole(1), whole(shape_.width));
  };
  return {.gain = read("weight"), .bias = read("bias")};
}

std::size_t Encoder::weight_bytes() const {
  std::size_t bytes = 0;
  for (const Layer& layer : layers_) {
    for (const auto* part : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.up, &layer.down}) {
      bytes += part->weight.bytes();
    }
  }
  return bytes;
}

// Returns the rows of all texts, one after another: the normalised sum of the embeddings of word,
// position and first type.
std::vector<float> Encoder::embeddings(Texts texts) const {
  const auto row = [&](const char* kind, std::size_t number) {
    return weights_.read(std::string("embeddings.") + kind + "_embeddings.weight",
                         {.first = number, .count = 1}, whole(shape_.width));
  };
  const std::vector<float> type = row("token_type", 0);
  std::vector<float> x;
  for (const auto& tokens : texts) {
    if (tokens.empty() || tokens.size() > shape_.positions) {
      throw std::runtime_error("a text has " + std::to_string(tokens.size()) +
                               " tokens; this model reads 1 to " +
                               std::to_string(shape_.positions));
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::vector<float> sum = row("word", static_cast<std::size_t>(tokens[i]));
      add_to(row("position", i), sum);
      add_to(type, sum);
      x.insert(x.end(), sum.begin(), sum.end());
    }
  }
  layer_norm(x, first_norm_.gain, first_norm_.bias, shape_.epsilon);
  return x;
}

// Computes attention, in which every token of a text sees all its tokens.
std::vector<float> Encoder::attend(const Layer& layer, Texts texts,
                                   std::span<const float> x) const {
  const std::size_t rows = x.size() / shape_.width;
  const auto product = [&](const Linear& linear) {
    std::vector<float> y(rows * linear.bias.size());
    linear.weight.times(x, y, rows);
    add_bias(linear.bias, y);
    return y;
  };
  const std::vector<float> q = product(layer.q);
  const std::vector<float> k = product(layer.k);
  const std::vector<float> v = product(layer.v);
  const up::AttentionShape shape{
      .heads = share_.query.count, .key_value_heads = share_.query.count, .dim = shape_.dim};
  const auto kernel = attention_kernel(0);
  std::vector<float> out(q.size());
  std::vector<float> log_sum(rows * shape.heads);
  std::size_t first = 0;
  for (const auto& tokens : texts) {
    const std::vector<std::size_t> places(tokens.size(), 0);  // equal positions: all are visible
    const std::size_t at = first * shape.heads * shape.dim;
    const std::size_t count = tokens.size() * shape.heads * shape.dim;
    kernel.forward({.shape = shape,
                    .query_positions = places,
                    .key_positions = places,
                    .query = std::span(q).subspan(at, count),
                    .key = std::span(k).subspan(at, count),
                    .value = std::span(v).subspan(at, count)},
                   &out[at], &log_sum[first * shape.heads]);
    first += tokens.size();
  }
  return out;
}

std::vector<float> Encoder::attention(const Layer& layer, Texts texts,
                                      std::span<const float> x) const {
  std::vector<float> part(x.size());
  layer.o.weight.times(attend(layer, texts, x), part, x.size() / shape_.width);
  return part;
}

std::vector<float> Encoder::mlp(const Layer& layer, std::span<const float> x) const {
  const std::size_t rows = x.size() / shape_.width;
  std::vector<float> inner(rows * hidden_.count);
  layer.up.weight.times(x, inner, rows);
  add_bias(layer.up.bias, inner);
  gelu(inner);
  std::vector<float> part(x.size());
  layer.down.weight.times(inner, part, rows);
  return part;
}

// Computes x = norm(x + sum of `part` over the tp ranks + bias).
void Encoder::add_sum(std::span<float> part, const Linear& from, const Norm& norm,
                      std::span<float> x) {
  const auto begin = std::chrono::steady_clock::now();
  tp_.all_reduce(part, unisono::sum);
  communication_s_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  add_to(part, x);
  add_bias(from.bias, x);
  layer_norm(x, norm.gain, norm.bias, shape_.epsilon);
}

std::vector<std::vector<float>> Encoder::embed(Texts texts) {
  std::vector<float> x = embeddings(texts);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = "layer " + std::to_string(i);
    const Layer& layer = layers_[i];
    tp_.label(name + " attention");
    std::vector<float> part = attention(layer, texts, x);
    add_sum(part, layer.o, layer.after_attention, x);
    tp_.label(name + " mlp");
    part = mlp(layer, x);
    add_sum(part, layer.down, layer.after_mlp, x);
  }
  std::vector<std::vector<float>> vectors;
  std::span<const float> rest = x;
  for (const auto& tokens : texts) {
    vectors.push_back(direction(rest.first(tokens.size() * shape_.width), shape_.width));
    rest = rest.subspan(tokens.size() * shape_.width);
  }
  return vectors;
}

}  // namespace llm
