#include "planner/serving.h"

#include <algorithm>
#include <cmath>

namespace unisono::planner {
namespace {

constexpr double kReserveBytes = 3.0 * (1 << 30);  // context, kernels, graphs, activations

// How many experts of a layer a step visits when `tokens` choose evenly.
double visited_experts(const ModelShape& shape, double tokens) {
  const double missed = 1 - static_cast<double>(shape.experts_per_token) / shape.experts;
  return shape.experts * (1 - std::pow(missed, tokens));
}

double stored_bytes(const PartWeights& weights, const ServingTask& task) {
  return task.stored ? bytes_of(weights, *task.stored)
                     : weights.total() * weight_bytes(task.weights);
}

// Weights that a step of `tokens` reads, of all ranks together; the embedding is looked up only.
PartWeights read_weights(const ModelShape& shape, double tokens) {
  PartWeights weights = part_weights(shape);
  weights.ends -= shape.hidden * shape.vocabulary * (shape.tied ? 0 : 1);
  if (shape.has_experts()) {
    weights.experts =
        shape.expert_layers() * visited_experts(shape, tokens) * expert_weights(shape);
  }
  return weights;
}

double prompt_flops(const ModelShape& shape, double tokens) {
  const double dim = shape.latent.is_used()
                         ? shape.latent.plain_dim + shape.latent.rotary_dim + shape.latent.value_dim
                         : 2 * shape.head_dim;
  const double embedding = shape.hidden * shape.vocabulary * (shape.tied ? 1 : 2);
  return 2 * (active_weights(shape) - embedding - shape.vectors) * tokens +
         2 * shape.layers * shape.heads * dim * tokens * mean_seen_in_sequence(shape, tokens);
}

// Elements of a token's keys and values on one rank, in all of its layers: heads that are fewer
// than ranks are kept twice.
double local_cache(const ModelShape& shape, const ServingLayout& layout) {
  const double share =
      shape.latent.is_used()
          ? 1
          : std::max(1.0, static_cast<double>(shape.kv_heads) / layout.tp) / shape.kv_heads;
  return cache_elements(shape) * share * shape.layers / layout.pp;
}

}  // namespace

bool is_serving_measured(const ModelShape& shape, std::string_view device) {
  return !shape.has_experts() && (device == "h100" || device == "h200" || device == "b200");
}

std::string text_of(const ServingLayout& layout) {
  std::string text = "tp=" + std::to_string(layout.tp);
  if (layout.pp > 1) {
    text += ",pp=" + std::to_string(layout.pp);
  }
  if (layout.ep > 1) {
    text += ",ep=" + std::to_string(layout.ep);
  }
  return text + ",instances=" + std::to_string(layout.instances);
}

void take_stored(const ModelShape& shape, const DeviceModel& device, ServingTask& task) {
  task.stored = shape.stored;
  if (shape.stored) {
    const bool is_there =
        weight_bytes(shape.stored->multiplied) >= weight_bytes(device.narrowest());
    task.weights = is_there ? shape.stored->multiplied : Precision::bf16;
    task.cache = shape.stored->cache;
  }
}

std::string problem_of(const ModelShape& shape, const ServingLayout& layout,
                       const ServingTask& task) {
  if (shape.heads % layout.tp != 0) {
    return std::to_string(shape.heads) +
           " heads cannot be divided by tp=" + std::to_string(layout.tp);
  }
  if (layout.pp > shape.layers) {
    return std::to_string(shape.layers) + " layers are fewer than pp=" + std::to_string(layout.pp);
  }
  if (layout.ep > 1 && (shape.experts == 0 || shape.experts % layout.ep != 0)) {
    return std::to_string(shape.experts) +
           " experts cannot be divided by ep=" + std::to_string(layout.ep);
  }
  if (task.concurrency < 1) {
    return "an instance without a request";
  }
  return {};
}

ServingEstimate estimate_serving(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants) {
  const DeviceModel& device = cluster.device;
  const double devices = static_cast<double>(layout.tp) * layout.pp;
  const double batch = task.concurrency;
  const double per_second = device.memory_bytes_per_s / constants.memory;
  const double context = task.input + task.output / 2;
  const double cache_byte = weight_bytes(task.cache);

  TokenParts parts;
  // A pipeline's stages work on parts of the batch in turn: a token meets all of them.
  parts.weights = stored_bytes(read_weights(shape, batch), task) / layout.tp / per_second;
  parts.cache =
      batch * mean_seen(shape, context) * local_cache(shape, layout) * cache_byte / per_second;
  const double products = batch * prompt_flops(shape, 1) / layout.tp / device.flops(task.weights);
  parts.products = std::max(0.0, products - parts.weights);
  parts.layers = shape.layers * constants.layer_s;
  const double row = shape.hidden * weight_bytes(Precision::bf16);
  const double share = (layout.tp - 1.0) / layout.tp;
  const double exchanges = 2.0 * shape.layers * 2 * share * row;
  parts.exchange = ring_s(cluster, batch * exchanges, layout.tp, 1);
  parts.requests = batch * constants.request_s;
  const double prompt =
      constants.prompts * prompt_flops(shape, task.input) / devices / device.flops(task.weights) +
      0.2 * ring_s(cluster, task.input * exchanges, layout.tp, 1);
  parts.prompts = prompt * batch / task.output;

  ServingEstimate result{.layout = layout, .concurrency = batch, .parts = parts};
  result.token_s = parts.total();
  result.first_token_s = prompt * layout.pp + result.token_s;
  const double request_s = result.first_token_s + task.output * result.token_s;
  result.tokens_per_s_device = batch * task.output / request_s / devices;
  result.memory.weights = stored_bytes(part_weights(shape), task) / devices;
  result.memory.cache =
      batch * mean_kept(shape, task.input + task.output) * local_cache(shape, layout) * cache_byte;
  result.memory.buffers = kReserveBytes;
  return result;
}

}  // namespace unisono::planner
