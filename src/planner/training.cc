#include "planner/training.h"

#include <algorithm>
#include <cmath>

#include "planner/layer_work.h"

namespace unisono::planner {
namespace {

// The fixed cost of an exchange in a tensor-parallel group: all ranks start it when the last rank
// arrives.
constexpr double kMeetingS = 220e-6;
constexpr double kFusedMeetingS = 20e-6;  // if kernels are queued ahead of their data

// The share of the exchange of keys and values that stays exposed even if attention takes longer.
constexpr double kLeastExposed = 0.1;

class Model {
 public:
  Model(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
        const Cluster& cluster, LayerTimes times)
      : shape_(shape), layout_(layout), task_(task), cluster_(cluster), times_(times) {}
  Model(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
        const Cluster& cluster)
      : Model(shape, layout, task, cluster, {}) {
    times_ = layer_times();
  }

  LayerTimes layer_times() const;
  TrainingEstimate estimate() const;
  PassTimes pass_times() const;

 private:
  double again_s(const Passes& stage) const;
  const Constants& constants() const { return cluster_.device.constants; }
  Passes passes_of(const LayerWork& work, double factor) const;
  double experts_s(double tokens) const;
  Passes stage() const;
  double data_s(const Passes& stage) const;
  double hop_s() const;

  const ModelShape& shape_;
  const Layout& layout_;
  const TrainingTask& task_;
  const Cluster& cluster_;
  LayerTimes times_;
};

Passes Model::passes_of(const LayerWork& work, double factor) const {
  const DeviceModel& device = cluster_.device;
  Passes passes;
  for (const MatrixProduct& product : work.products) {
    passes.forward.compute += matrix_s(device, task_.precision, product);
    passes.backward.compute += matrix_backward_s(device, task_.precision, product);
  }
  for (const MatrixProduct& product : work.attention) {
    const double once = matrix_s(device, Precision::bf16, product);
    passes.forward.compute += once;
    passes.backward.compute += once * work.attention_backward;
  }
  const double bytes_per_s = device.memory_bytes_per_s;
  passes.forward.memory = work.memory_bytes / bytes_per_s;
  passes.backward.memory = work.backward_memory_bytes / bytes_per_s;
  for (OneWay* way : {&passes.forward, &passes.backward}) {
    way->compute *= constants().compute * factor;
    way->memory *= constants().memory * factor;
  }
  if (layout_.tp > 1) {
    const double meeting = task_.materialised_attention ? kMeetingS : kFusedMeetingS;
    passes.tensor = ring_s(cluster_, work.tensor_bytes, layout_.tp, 1) + 2 * meeting;
  }
  // Attention hides the ring; the exchange between positions and heads is exposed.
  const auto context = [&](double ring_bytes, double heads_bytes, double compute) {
    const double ring = ring_s(cluster_, ring_bytes, layout_.cp, layout_.tp * layout_.uly);
    return std::max(kLeastExposed * ring, ring - compute / 2) +
           ring_s(cluster_, heads_bytes, layout_.uly, layout_.tp);
  };
  passes.context = context(work.context_bytes, work.heads_bytes, passes.forward.total());
  passes.backward_context =
      context(work.backward_context_bytes, work.backward_heads_bytes, passes.backward.total());
  passes.experts = experts_s(work.expert_tokens) * factor;
  return passes;
}

// Returns the time to send tokens to their experts and back. A row crosses once to each domain that
// has one of its experts, and is forwarded there.
double Model::experts_s(double tokens) const {
  if (layout_.ep == 1) {
    return 0;
  }
  const double domains =
      std::max(1.0, std::ceil(static_cast<double>(layout_.ep) / cluster_.domain));
  const double k = shape_.experts_per_token;
  const double met = domains * (1 - std::pow(1 - 1 / domains, k));
  const double row = shape_.hidden * weight_bytes(Precision::bf16);
  const double share = 1 - 1.0 / layout_.ep;
  return 2 * send_s(cluster_, tokens * k * row * share, tokens * met * row * (1 - 1 / domains));
}

LayerTimes Model::layer_times() const {
  LayerTimes times{.head = passes_of(head_work(shape_, layout_, task_), 1)};
  const int with_experts = shape_.expert_layers();
  if (shape_.layers > with_experts) {
    times.dense = passes_of(layer_work(shape_, layout_, task_, false), 1);
  }
  if (with_experts > 0) {
    times.experts = passes_of(layer_work(shape_, layout_, task_, true), constants().experts);
  }
  return times;
}

// Returns the sum over all layers of the busiest stage. The last stage is the busiest, because it
// also has the head.
Passes Model::stage() const {
  const double layers = stage_layers(shape_, layout_);
  const double with_experts = layers * shape_.expert_layers() / shape_.layers;
  Passes sum;
  const auto add = [&](const Passes& passes, double times) {
    sum.forward.compute += times * passes.forward.compute;
    sum.forward.memory += times * passes.forward.memory;
    sum.backward.compute += times * passes.backward.compute;
    sum.backward.memory += times * passes.backward.memory;
    sum.tensor += times * passes.tensor;
    sum.context += times * passes.context;
    sum.backward_context += times * passes.backward_context;
    sum.experts += times * passes.experts;
  };
  add(times_.dense, layers - with_experts);
  add(times_.experts, with_experts);
  return sum;
}

// Gradients are summed, and weights gathered, once per step, or per microbatch with ZeRO 3.
double Model::data_s(const Passes& stage) const {
  const LocalWeights weights = local_weights(shape_, layout_);
  const int copies = layout_.copies();
  const int expert_copies = layout_.stage_ranks() / layout_.ep;
  const auto moved = [&](double elements, int ranks, int apart) {
    const double share = ranks > 1 ? (ranks - 1.0) / ranks : 0;
    return ring_s(cluster_, 2 * 2 * elements * share, ranks, apart);
  };
  const double once =
      moved(weights.dense, copies, layout_.tp) + moved(weights.experts, expert_copies, layout_.ep);
  const double count = microbatches(layout_, task_);
  if (layout_.zero == 2) {
    // Gradients are scattered after each microbatch; weights are gathered once.
    const double hidden = stage.backward.total();
    return count * std::max(0.05 * once, 0.5 * once - hidden) + 0.5 * once * kExposedData;
  }
  if (layout_.zero >= 3) {
    // Weights are gathered forward and backward, and gradients reduced: one and a half times the
    // bytes of `once`.
    const double a_microbatch = 1.5 * once;
    const double hidden = stage.forward.total() + stage.backward.total();
    return count * std::max(0.1 * a_microbatch, a_microbatch - hidden);
  }
  return task_.materialised_attention ? once : once * kExposedData;
}

double Model::hop_s() const {
  if (layout_.pp == 1) {
    return 0;
  }
  // The ranks of a tensor-parallel group have the same rows: each sends its part, and the next
  // stage gathers them over its fast links (Narayanan et al., 2021).
  const double bytes = local_tokens(layout_, task_) * shape_.hidden * 2 / layout_.tp;
  return ring_s(cluster_, bytes, layout_.pp, layout_.stage_ranks());
}

double Model::again_s(const Passes& stage) const {
  switch (layout_.recompute) {
    case Recompute::full:
      return stage.forward.total();
    case Recompute::selective:
      return stage.forward.memory / 2;
    case Recompute::none:
      break;
  }
  return 0;
}

PassTimes Model::pass_times() const {
  const Passes stage = this->stage();
  const Passes& head = times_.head;
  return {.forward_s = stage.forward.total(),
          .backward_s = stage.backward.total() + again_s(stage),
          .head_forward_s = head.forward.total(),
          .head_backward_s = head.backward.total()};
}

TrainingEstimate Model::estimate() const {
  const Passes stage = this->stage();
  const Passes& head = times_.head;
  const double count = microbatches(layout_, task_);
  StepParts parts;
  parts.compute = count * (stage.forward.compute + stage.backward.compute + head.forward.compute +
                           head.backward.compute);
  parts.memory = count * (stage.forward.memory + stage.backward.memory + head.forward.memory +
                          head.backward.memory);
  const double ways = layout_.recompute == Recompute::full ? 3 : 2;
  const double again = again_s(stage);
  parts.recompute = count * again;
  parts.tensor = count * ways * stage.tensor;
  // Recomputed attention sends its blocks around the ring again.
  const double context = (ways - 1) * stage.context + stage.backward_context;
  parts.context = count * context;
  parts.experts = count * ways * stage.experts;
  const double hop = hop_s();
  parts.pipeline = count * layout_.vp * hop * (task_.materialised_attention ? 0.5 : 0.25);
  const double a_microbatch = stage.forward.total() + stage.backward.total() + again +
                              ways * (stage.tensor + stage.experts) + context;
  parts.bubble = (layout_.pp - 1.0) / layout_.vp * (a_microbatch + 2 * layout_.vp * hop);
  parts.data = data_s(stage);
  const LocalWeights weights = local_weights(shape_, layout_);
  const double shards = layout_.zero >= 1 ? layout_.copies() : 1;
  // Adam reads the gradient and three f32 values, and writes these values and the weight.
  parts.optimiser = (weights.dense + weights.experts) / shards * (4 + 12 + 12 + 2) /
                    cluster_.device.memory_bytes_per_s;

  // Copies to the host and back run in both directions at once. Computation hides the copies of
  // activations.
  const double host_bytes_per_s = cluster_.device.host_bytes_per_s;
  if (layout_.offload.optimiser) {
    parts.offload += (weights.dense + weights.experts) / shards * 12 / host_bytes_per_s;
  }
  if (layout_.offload.activations) {
    Layout kept = layout_;
    kept.offload.activations = false;
    const double bytes = kept_bytes(shape_, kept, task_) * stage_layers(shape_, layout_);
    const double computes = stage.forward.total();
    parts.offload += count * 2 * std::max(0.0, bytes / host_bytes_per_s - computes);
  }

  TrainingEstimate result{.layout = layout_, .parts = parts};
  result.memory = training_memory(shape_, layout_, task_);
  result.step_s = parts.total();
  const double devices = layout_.devices();
  result.tokens_per_s_device = task_.batch * task_.sequence / result.step_s / devices;
  result.flops_per_s_device = model_flops(shape_, task_) / result.step_s / devices;
  result.utilisation = result.flops_per_s_device / cluster_.device.flops(task_.precision);
  return result;
}

}  // namespace

double model_flops(const ModelShape& shape, const TrainingTask& task) {
  const double embedding = shape.tied ? 0 : shape.hidden * shape.vocabulary;
  const double a_token =
      2 * (active_weights(shape) - embedding - shape.vectors) + mixing_flops(shape, task.sequence);
  return 3 * a_token * task.batch * task.sequence;
}

PassTimes pass_times(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     const Cluster& cluster) {
  return Model(shape, layout, task, cluster).pass_times();
}

TrainingEstimate estimate_training(const ModelShape& shape, const Layout& layout,
                                   const TrainingTask& task, const Cluster& cluster) {
  return Model(shape, layout, task, cluster).estimate();
}

TrainingEstimate TrainingModel::estimate(const Layout& layout) {
  const std::array<int, 5> axes = {layout.tp, layout.cp, layout.uly, layout.ep, layout.micro_batch};
  auto known = times_.find(axes);
  if (known == times_.end()) {
    known = times_.emplace(axes, Model(shape_, layout, task_, cluster_, {}).layer_times()).first;
  }
  return Model(shape_, layout, task_, cluster_, known->second).estimate();
}

}  // namespace unisono::planner
