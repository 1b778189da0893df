#include "programs.h"

namespace unisono::msccl::testing {
namespace {

constexpr Buffer kInput = Buffer::input;
constexpr Buffer kOutput = Buffer::output;
constexpr Buffer kScratch = Buffer::scratch;

}  // namespace

MscclProgram all_pairs(int gpus) {
  MscclProgram program{.name = "all_pairs",
                       .protocol = "LL",
                       .collective = Collective::all_reduce,
                       .chunks_per_loop = gpus,
                       .in_place = true,
                       .out_of_place = false};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    Gpu one{.chunks = {gpus, gpus, gpus - 1}};
    // Block 0 adds; block 1 + i exchanges with the i-th other GPU.
    ThreadBlock adds;
    for (int i = 0; i + 1 < gpus; ++i) {
      adds.steps.push_back(
          {.type = StepType::nop, .chunks = 0, .depends_on_block = 1 + i, .depends_on_step = 1});
    }
    for (int i = 0; i + 1 < gpus; ++i) {
      adds.steps.push_back({.type = StepType::reduce,
                            .source = {kScratch, i},
                            .target = {kInput, gpu},
                            .tells = i + 2 == gpus});
    }
    const int last = static_cast<int>(adds.steps.size()) - 1;
    one.blocks.push_back(adds);
    for (int i = 0; i + 1 < gpus; ++i) {
      const int peer = i < gpu ? i : i + 1;
      ThreadBlock exchanges{.send = peer, .receive = peer};
      exchanges.steps = {
          {.type = StepType::send, .source = {kInput, peer}, .target = {kScratch, 0}},
          {.type = StepType::receive, .target = {kScratch, i}, .tells = true},
          {.type = StepType::send,
           .source = {kInput, gpu},
           .target = {kInput, gpu},
           .depends_on_block = 0,
           .depends_on_step = last},
          {.type = StepType::receive, .target = {kInput, peer}}};
      one.blocks.push_back(exchanges);
    }
    program.gpus.push_back(one);
  }
  return program;
}

MscclProgram fused_ring(int gpus) {
  MscclProgram program{
      .name = "fused_ring", .collective = Collective::all_reduce, .chunks_per_loop = gpus};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const auto chunk = [&](int back) { return ((gpu - back) % gpus + gpus) % gpus; };
    ThreadBlock block{.send = (gpu + 1) % gpus, .receive = (gpu + gpus - 1) % gpus};
    block.steps.push_back(
        {.type = StepType::send, .source = {kInput, chunk(0)}, .target = {kOutput, chunk(0)}});
    for (int i = 1; i + 1 < gpus; ++i) {
      block.steps.push_back({.type = StepType::receive_reduce_send,
                             .source = {kInput, chunk(i)},
                             .target = {kOutput, chunk(i)}});
    }
    const BufferPlace whole{kOutput, chunk(gpus - 1)};
    block.steps.push_back({.type = StepType::receive_reduce_copy_send,
                           .source = {kInput, whole.offset},
                           .target = whole});
    for (int i = 0; i + 2 < gpus; ++i) {
      block.steps.push_back({.type = StepType::receive_copy_send, .target = {kOutput, chunk(i)}});
    }
    block.steps.push_back({.type = StepType::receive, .target = {kOutput, chunk(gpus - 2)}});
    program.gpus.push_back({.chunks = {gpus, gpus, 0}, .blocks = {block}});
  }
  return program;
}

MscclProgram forwarding_all_gather(int gpus) {
  MscclProgram program{.name = "forwarding",
                       .collective = Collective::all_gather,
                       .channels = 2,
                       .chunks_per_loop = 2 * gpus,
                       .in_place = false};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    Gpu one{.chunks = {2, 2 * gpus, 0}};
    for (int channel = 0; channel < 2; ++channel) {
      ThreadBlock block{
          .send = (gpu + 1) % gpus, .receive = (gpu + gpus - 1) % gpus, .channel = channel};
      block.steps.push_back({.type = StepType::send, .source = {kInput, channel}});
      block.steps.push_back({.type = StepType::copy,
                             .source = {kInput, channel},
                             .target = {kOutput, 2 * gpu + channel}});
      for (int i = 1; i < gpus; ++i) {
        const int from = (gpu - i + gpus) % gpus;
        block.steps.push_back(
            {.type = i + 1 < gpus ? StepType::receive_copy_send : StepType::receive,
             .target = {kOutput, 2 * from + channel}});
      }
      one.blocks.push_back(block);
    }
    program.gpus.push_back(one);
  }
  return program;
}

}  // namespace unisono::msccl::testing
