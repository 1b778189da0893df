#include "plans.h"

namespace unisono::mscclpp::testing {
namespace {

PlanPlace place(int gpu, Buffer buffer, int offset, int chunks = 1) {
  return {.gpu = gpu, .buffer = buffer, .offset = offset, .chunks = chunks};
}
PlanOperation nop() {
  return {};
}

}  // namespace

ExecutionPlan reading_pair() {
  ExecutionPlan plan{
      .name = "reading_pair", .collective = Collective::all_reduce, .in_place = true};
  for (int gpu = 0; gpu < 2; ++gpu) {
    const int other = 1 - gpu;
    const PlanPlace mine = place(gpu, Buffer::input, 2 * gpu);
    const PlanPlace here = place(gpu, Buffer::input, 2 * gpu + 1);
    const PlanPlace scratch = place(gpu, Buffer::scratch, 2 * gpu + 1);
    const PlanOperation signal{.type = OperationType::signal, .channels = {0}};
    const PlanOperation wait{.type = OperationType::wait, .channels = {0}};
    const ThreadBlock block = {
        // The data for the other GPU is in scratch, because that GPU writes to the input.
        {.type = OperationType::copy,
         .sources = {place(gpu, Buffer::input, 2 * other, 2)},
         .targets = {place(gpu, Buffer::scratch, 2 * other, 2)}},
        nop(),
        signal,
        nop(),
        wait,
        nop(),
        {.type = OperationType::read_reduce_send,
         .sources = {mine, place(other, Buffer::scratch, 2 * gpu)},
         .targets = {mine, place(other, Buffer::input, 2 * gpu)}},
        {.type = OperationType::get,
         .sources = {place(other, Buffer::scratch, 2 * gpu + 1)},
         .targets = {scratch}},
        nop(),
        {.type = OperationType::reduce_send,
         .sources = {here, scratch},
         .targets = {here, place(other, Buffer::input, 2 * gpu + 1)}},
        nop(),
        signal,
        nop(),
        wait};
    plan.gpus.push_back({.chunks = {4, 4, 4}, .channels = {other}, .blocks = {block}});
  }
  return plan;
}

ExecutionPlan putting_to_all(int gpus) {
  ExecutionPlan plan{.name = "putting_to_all", .collective = Collective::all_gather};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    PlanGpu one{.chunks = {2, 2 * gpus, 0}};
    std::vector<int> channels;
    for (int peer = 0; peer < gpus; ++peer) {
      if (peer != gpu) {
        channels.push_back(static_cast<int>(one.channels.size()));
        one.channels.push_back(peer);
      }
    }
    const PlanOperation barrier{.type = OperationType::barrier, .barrier = 1, .barrier_blocks = 2};
    for (int block = 0; block < 2; ++block) {
      PlanOperation put{.type = OperationType::put};
      for (const int peer : one.channels) {
        put.sources.push_back(place(gpu, Buffer::input, block));
        put.targets.push_back(place(peer, Buffer::output, 2 * gpu + block));
      }
      const PlanOperation copy{.type = OperationType::copy,
                               .sources = {place(gpu, Buffer::input, block)},
                               .targets = {place(gpu, Buffer::output, 2 * gpu + block)}};
      if (block == 0) {
        one.blocks.push_back({{.type = OperationType::relaxed_signal, .channels = channels},
                              {.type = OperationType::relaxed_wait, .channels = channels},
                              barrier,
                              copy,
                              put,
                              barrier,
                              {.type = OperationType::signal, .channels = channels},
                              {.type = OperationType::wait, .channels = channels}});
      } else {
        one.blocks.push_back({barrier, put, copy, barrier});
      }
    }
    plan.gpus.push_back(one);
  }
  return plan;
}

ExecutionPlan adding_in_scratch(int gpus) {
  ExecutionPlan plan{.name = "adding_in_scratch", .collective = Collective::all_reduce};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    PlanGpu one{.chunks = {1, 1, gpus - 1}};
    const PlanPlace input = place(gpu, Buffer::input, 0);
    const PlanPlace sum = place(gpu, Buffer::scratch, 0);
    std::vector<int> channels;
    PlanOperation put{.type = OperationType::put};
    PlanOperation add{.type = OperationType::reduce, .targets = {sum}};
    for (int peer = 0; peer < gpus; ++peer) {
      if (peer != gpu) {
        const int slot = static_cast<int>(channels.size());
        channels.push_back(slot);
        one.channels.push_back(peer);
        put.sources.push_back(input);
        put.targets.push_back(place(peer, Buffer::scratch, gpu < peer ? gpu : gpu - 1));
        add.sources.push_back(place(gpu, Buffer::scratch, slot));
      }
    }
    const PlanOperation signal{.type = OperationType::signal, .channels = channels};
    const PlanOperation wait{.type = OperationType::wait, .channels = channels};
    one.blocks = {{signal,
                   wait,
                   nop(),
                   put,
                   nop(),
                   signal,
                   wait,
                   nop(),
                   add,
                   nop(),
                   {.type = OperationType::reduce, .sources = {input, sum}, .targets = {sum}},
                   nop(),
                   {.type = OperationType::copy,
                    .sources = {sum},
                    .targets = {place(gpu, Buffer::output, 0)}}}};
    plan.gpus.push_back(one);
  }
  return plan;
}

}  // namespace unisono::mscclpp::testing
