#include "planner/serving.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "unisono/error.hpp"

namespace unisono::planner {
namespace {

constexpr double kReserveBytes = 3.0 * (1 << 30);  // context, kernels, graphs, activations

// Returns the number of experts of a layer that a step visits if `tokens` choose evenly.
double visited_experts(const ModelShape& shape, double tokens) {
  const double missed = 1 - static_cast<double>(shape.experts_per_token) / shape.experts;
  return shape.experts * (1 - std::pow(missed, tokens));
}

double stored_bytes(const PartWeights& weights, const ServingTask& task) {
  return task.stored ? bytes_of(weights, *task.stored)
                     : weights.total() * weight_bytes(task.weights);
}

// Returns the weights that a step of `tokens` reads on all ranks together. The embedding is only
// looked up.
PartWeights read_weights(const ModelShape& shape, double tokens) {
  PartWeights weights = part_weights(shape);
  weights.ends -= shape.hidden * shape.vocabulary * (shape.tied ? 0 : 1);
  if (shape.has_experts()) {
    weights.experts =
        shape.expert_layers() * visited_experts(shape, tokens) * expert_weights(shape);
  }
  return weights;
}

// Returns the work of a prompt whose first `cached` tokens are already in the cache. All devices
// wait for the device whose experts get the most rows.
double prompt_flops(const ModelShape& shape, double imbalance, double tokens, double cached = 0) {
  const double embedding = shape.hidden * shape.vocabulary * (shape.tied ? 1 : 2);
  const double more =
      (imbalance - 1) * shape.expert_layers() * shape.experts_per_token * expert_weights(shape);
  return 2 * (active_weights(shape) + more - embedding - shape.vectors) * (tokens - cached) +
         mixing_flops(shape, tokens) * tokens -
         (cached > 0 ? mixing_flops(shape, cached) * cached : 0);
}

// Returns the elements of a sequence's caches on one rank, with `tokens_of` tokens per layer. If
// there are fewer heads than ranks, heads are kept on several ranks. An indexer's cache counts
// `all` tokens.
template <typename TokensOf>
double local_cache(const ModelShape& shape, const ServingLayout& layout, double all,
                   const TokensOf& tokens_of) {
  return sum_of_layers(shape,
                       [&](LayerKind kind) {
                         if (kind.mixer != Mixer::attention) {
                           return 0.0;
                         }
                         const double keys = heads_of(shape, kind).keys;
                         const double share =
                             shape.latent.is_used() ? 1 : std::max(1.0, keys / layout.tp) / keys;
                         return tokens_of(kind) * cache_elements(shape, kind) * share +
                                all * shape.indexer.dim;
                       }) /
         layout.pp;
}

}  // namespace

double Speculation::tokens_per_step() const {
  double tokens = 1;
  double chance = 1;
  for (int i = 0; i < drafted; ++i) {
    chance *= accepted;
    tokens += chance;
  }
  return tokens;
}

std::optional<Speculation> speculation_of(std::span<const double> numbers,
                                          const ModelShape& shape) {
  constexpr double kMostDrafted = 64;
  const auto is_share = [](double number) { return number >= 0 && number <= 1; };
  if (numbers.size() < 2 || numbers.size() > 3 ||
      !std::ranges::all_of(numbers.subspan(1), is_share) ||
      !(numbers[0] >= 1 && numbers[0] <= kMostDrafted) || numbers[0] != std::floor(numbers[0])) {
    return std::nullopt;
  }
  return Speculation{.drafted = static_cast<int>(numbers[0]),
                     .accepted = numbers[1],
                     .cost = numbers.size() == 3 ? numbers[2] : 1.0 / shape.layers};
}

bool is_serving_measured(const ModelShape& shape, std::string_view device) {
  return !shape.has_experts() && shape.is_uniform() &&
         (device == "h100" || device == "h200" || device == "b200");
}

std::string text_of(const ServingLayout& layout) {
  std::string text = "tp=" + std::to_string(layout.tp);
  if (layout.pp > 1) {
    text += ",pp=" + std::to_string(layout.pp);
  }
  if (layout.ep > 1) {
    text += ",ep=" + std::to_string(layout.ep);
  }
  if (layout.dp > 1) {
    text += ",dp=" + std::to_string(layout.dp);
  }
  return text + ",instances=" + std::to_string(layout.instances);
}

ServingLayout parse_serving_layout(std::string_view text, const ModelShape& shape, int devices) {
  ServingLayout layout;
  layout.ep = 0;
  layout.instances = 0;
  const std::array<AxisSize, 5> axes = {{{"tp", &layout.tp},
                                         {"pp", &layout.pp},
                                         {"ep", &layout.ep},
                                         {"dp", &layout.dp},
                                         {"instances", &layout.instances}}};
  read_axes(text, axes, "tp, pp, ep, dp, instances");
  const std::int64_t spread = static_cast<std::int64_t>(layout.tp) * layout.dp;
  const std::int64_t each = spread * layout.pp;
  if (layout.ep == 0) {
    layout.ep = shape.has_experts() && shape.experts % spread == 0 ? static_cast<int>(spread) : 1;
  }
  if (each * std::max(layout.instances, 1) > devices) {
    throw Error(ErrorCode::usage, "tp x pp x dp x instances is " +
                                      std::to_string(each * std::max(layout.instances, 1)) +
                                      ", and there are " + std::to_string(devices) + " devices");
  }
  if (layout.instances == 0) {
    layout.instances = static_cast<int>(devices / each);
  }
  return layout;
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

ServingTask asked_of(ServingTask task, const ServingLayout& layout) {
  task.concurrency = task.concurrency > 0 ? task.concurrency : layout.dp;
  return task;
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
  if (layout.dp > 1 && layout.ep != layout.tp * layout.dp) {
    return "groups share experts: ep is tp x dp, " + std::to_string(layout.tp * layout.dp);
  }
  if (task.concurrency < layout.dp) {
    return "a group without a request";
  }
  return {};
}

namespace {

// Only devices with different experts can be imbalanced.
double imbalance_of(const ServingLayout& layout, const ServingTask& task) {
  return layout.ep > 1 ? task.imbalance : 1;
}

// Returns the time to send the rows of one device to their experts (in the experts' narrow type)
// and back in bf16. With `once`, a row is sent once to each domain that has one of its experts, and
// is forwarded inside the domain. Otherwise each expert gets its own copy, as in decoding, which
// has no time to gather rows.
double experts_s(const ModelShape& shape, const ServingLayout& layout, const ServingTask& task,
                 const Cluster& cluster, double rows, bool once) {
  if (layout.dp == 1) {
    return 0;
  }
  const double domain = std::max(1, cluster.domain / layout.pp);
  const double domains = std::max(1.0, std::ceil(layout.ep / domain));
  const double k = shape.experts_per_token;
  const double bytes =
      rows * shape.hidden * (weight_bytes(task.weights) + weight_bytes(Precision::bf16));
  const double copies = once ? domains * (1 - std::pow(1 - 1 / domains, k)) : k;
  return shape.expert_layers() * imbalance_of(layout, task) *
         send_s(cluster, bytes * k * (1 - 1.0 / layout.ep), bytes * copies * (1 - 1 / domains));
}

// Returns the bytes that a token's rows move through tp, in all layers.
double exchanged_bytes(const ModelShape& shape, const ServingLayout& layout) {
  const double row = shape.hidden * weight_bytes(Precision::bf16);
  return 2.0 * shape.layers * 2 * (layout.tp - 1.0) / layout.tp * row;
}

double weight_memory(const ModelShape& shape, const ServingLayout& layout,
                     const ServingTask& task) {
  PartWeights all = part_weights(shape);
  const double group = static_cast<double>(layout.tp) * layout.pp;
  const double total = stored_bytes(all, task);
  all.experts = 0;
  const double others = stored_bytes(all, task);
  return others / group + (total - others) / (group * layout.dp);
}

}  // namespace

PromptPool estimate_prompts(const ModelShape& shape, const ServingLayout& layout,
                            const ServingTask& task, const Cluster& cluster,
                            const ServingConstants& constants) {
  const double devices = static_cast<double>(layout.tp) * layout.pp;
  PromptPool pool{.layout = layout};
  pool.layout.instances = 1;
  const double cached = task.prefix_hits * task.input;
  const double read = task.input - cached;
  pool.prompt_s = constants.prompts *
                      prompt_flops(shape, imbalance_of(layout, task), task.input, cached) /
                      devices / cluster.device.flops(task.weights) +
                  0.2 * ring_s(cluster, read * exchanged_bytes(shape, layout), layout.tp, 1) +
                  experts_s(shape, layout, task, cluster, read / layout.tp, true) / layout.pp;
  pool.memory.weights = weight_memory(shape, layout, task);
  pool.memory.cache = kept_elements(shape, task.input) * weight_bytes(task.cache) / layout.pp;
  pool.memory.buffers = kReserveBytes;
  return pool;
}

ServingEstimate estimate_answers(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants) {
  const DeviceModel& device = cluster.device;
  const double batch = task.concurrency / layout.dp;  // per group
  const double group = static_cast<double>(layout.tp) * layout.pp;
  const double per_second = device.memory_bytes_per_s / constants.memory;
  const double context = task.input + task.output / 2;
  const double cache_byte = weight_bytes(task.cache);

  TokenParts parts;
  // The stages of a pipeline work on parts of the batch in turn, and a token visits all of them.
  const double rows = batch * (1 + task.speculation.drafted);
  PartWeights read = read_weights(shape, rows * layout.dp);
  const double total = stored_bytes(read, task);
  read.experts = 0;
  const double others = stored_bytes(read, task);
  parts.weights = (others + (total - others) / layout.dp) / layout.tp / per_second;
  const double seen = local_cache(
      shape, layout, context, [&](LayerKind kind) { return seen_tokens(shape, kind, context); });
  const double states = batch * state_bytes(shape) / group;
  parts.cache = (batch * seen * cache_byte + 2 * states) / per_second;
  const double products = rows * prompt_flops(shape, imbalance_of(layout, task), 1) / layout.tp /
                          device.flops(task.weights);
  parts.products = std::max(0.0, products - parts.weights);
  parts.layers = shape.layers * constants.layer_s;
  parts.exchange = ring_s(cluster, rows * exchanged_bytes(shape, layout), layout.tp, 1);
  parts.experts = experts_s(shape, layout, task, cluster, rows / layout.tp, false);
  parts.requests = batch * constants.request_s;
  parts.draft = task.speculation.drafted * task.speculation.cost * parts.total();
  for (double* const part : {&parts.weights, &parts.cache, &parts.products, &parts.layers,
                             &parts.exchange, &parts.experts, &parts.requests, &parts.draft}) {
    *part /= task.speculation.tokens_per_step();
  }

  ServingEstimate result{.layout = layout, .concurrency = task.concurrency, .parts = parts};
  result.token_s = parts.total();
  result.memory.weights = weight_memory(shape, layout, task);
  const double longest = task.input + task.output;
  const double kept = local_cache(
      shape, layout, longest, [&](LayerKind kind) { return kept_tokens(shape, kind, longest); });
  result.memory.cache = batch * kept * cache_byte + states;
  result.memory.buffers = kReserveBytes;
  return result;
}

RequestServer prompt_server(const PromptPool& pool, const ServingConstants& constants) {
  return {
      .prompt_s = pool.prompt_s,
      .first_extra_s = first_token_s(pool.prompt_s, pool.layout.pp, 0, constants) - pool.prompt_s};
}

RequestServer answer_server(const ModelShape& shape, const ServingLayout& layout, ServingTask task,
                            const Cluster& cluster, int at_once,
                            const ServingConstants& constants) {
  const double tokens_per_step = task.speculation.tokens_per_step();
  RequestServer server{.steps = (task.output - 1) / tokens_per_step,
                       .tokens = task.output - 1,
                       .at_once = std::max(at_once, 1)};
  for (int answers = 1; server.step_s.empty() || answers < 2 * at_once; answers *= 2) {
    task.concurrency = static_cast<double>(answers) * layout.dp;
    server.step_s.push_back(estimate_answers(shape, layout, task, cluster, constants).token_s *
                            tokens_per_step);
  }
  return server;
}

// A request waits for a step, its own prompt, and a share of the other requests' prompts.
double first_token_s(double prompt_s, int stages, double others,
                     const ServingConstants& constants) {
  return constants.first_s +
         prompt_s * (constants.own_prompt * stages + constants.other_prompts * others);
}

ServingEstimate estimate_serving(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants) {
  ServingEstimate result = estimate_answers(shape, layout, task, cluster, constants);
  const double prompt_s = estimate_prompts(shape, layout, task, cluster, constants).prompt_s;
  result.parts.prompts = prompt_s * task.concurrency / layout.dp / task.output;
  result.token_s = result.parts.total();
  const double requests = task.concurrency / layout.dp;
  result.first_token_s = first_token_s(prompt_s, layout.pp, requests, constants) +
                         requests * constants.first_request_s;
  const double request_s = result.first_token_s + task.output * result.token_s;
  result.tokens_per_s_device = task.concurrency * task.output / request_s /
                               (static_cast<double>(layout.tp) * layout.pp * layout.dp);
  return result;
}

}  // namespace unisono::planner
