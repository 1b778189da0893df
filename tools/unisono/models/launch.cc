// Flags of programs that train and serve, as their documentation names them.
#include <fmt/format.h>

#include "cli/failure.h"
#include "models/models.h"

namespace unisono::cli {
namespace {

UsageError no_flags(std::string_view program, std::string_view what) {
  return UsageError(fmt::format("{} does not {}", program, what), {}, "unisono help plan-model");
}

std::string megatron(const planner::Layout& layout) {
  std::string text = fmt::format(
      "--tensor-model-parallel-size {} --pipeline-model-parallel-size {} "
      "--context-parallel-size {} --micro-batch-size {}",
      layout.tp, layout.pp, layout.cp * layout.uly, layout.micro_batch);
  if (layout.uly > 1) {
    text += layout.cp == 1 ? " --cp-comm-type a2a"
                           : fmt::format(
                                 " --cp-comm-type a2a+p2p "
                                 "--hierarchical-context-parallel-sizes {} {}",
                                 layout.uly, layout.cp);
  }
  if (layout.vp > 1) {
    text += fmt::format(" --num-virtual-stages-per-pipeline-rank {}", layout.vp);
  }
  if (layout.ep > 1) {
    text += fmt::format(" --expert-model-parallel-size {}", layout.ep);
  }
  if (layout.tp > 1 && layout.sequence_parallel) {
    text += " --sequence-parallel";
  }
  if (layout.zero >= 3) {
    text += " --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params";
  } else if (layout.zero >= 1) {
    text += " --use-distributed-optimizer";
  }
  if (layout.recompute == planner::Recompute::full) {
    text += " --recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
  } else if (layout.recompute == planner::Recompute::selective) {
    text += " --recompute-granularity selective --recompute-modules layernorm " +
            std::string(layout.ep > 1 ? "moe_act" : "mlp");
  }
  return text;
}

std::string torchtitan(const planner::Layout& layout) {
  const bool is_sharded = layout.zero >= 3;
  std::string text = fmt::format(
      "--parallelism.tensor_parallel_degree {} --parallelism.pipeline_parallel_degree {} "
      "--parallelism.context_parallel_degree {} --parallelism.data_parallel_shard_degree {} "
      "--parallelism.data_parallel_replicate_degree {} --training.local_batch_size {}",
      layout.tp, layout.pp, layout.cp, is_sharded ? layout.dp : 1, is_sharded ? 1 : layout.dp,
      layout.micro_batch);
  if (layout.ep > 1) {
    text += fmt::format(" --parallelism.expert_parallel_degree {}", layout.ep);
  }
  if (layout.recompute != planner::Recompute::none) {
    text += fmt::format(" --activation_checkpoint.mode {}", planner::to_string(layout.recompute));
  }
  return text;
}

}  // namespace

std::string launch_flags(std::string_view program, const planner::Layout& layout) {
  if (program == "megatron") {
    return megatron(layout);
  }
  if (program == "torchtitan") {
    return torchtitan(layout);
  }
  throw no_flags(program, "train");
}

std::string launch_flags(std::string_view program, const planner::ServingLayout& layout) {
  if (program != "vllm") {
    throw no_flags(program, "serve");
  }
  return fmt::format("--tensor-parallel-size {} --pipeline-parallel-size {}{}", layout.tp,
                     layout.pp, layout.ep > 1 ? " --enable-expert-parallel" : "");
}

}  // namespace unisono::cli
