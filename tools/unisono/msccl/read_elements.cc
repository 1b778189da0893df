#include "msccl/read_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace unisono::msccl {
namespace {

constexpr int kMostGpus = 4096;
constexpr int kMostChunks = 1 << 20;
constexpr std::size_t kMostSteps = 20'000'000;
constexpr int kAny = std::numeric_limits<int>::max();

// If input and output are one buffer, files give its size under only one of its names.
void complete_sizes(MscclProgram& program, int gpus) {
  if (!program.in_place || program.out_of_place) {
    return;
  }
  MscclProgram whole = program;
  whole.gpus.resize(static_cast<std::size_t>(gpus));
  const Schedule shape = shape_of(whole);
  const int gpu = static_cast<int>(program.gpus.size()) - 1;
  auto& chunks = program.gpus.back().chunks;
  chunks[0] = std::max(chunks[0], executors::input_chunks(shape, gpu));
  chunks[1] = std::max(chunks[1], executors::output_chunks(shape, gpu));
}

}  // namespace

void ElementReader::algorithm(const XmlAttributes& attributes) {
  program_.name = attributes.text("name").value_or("");
  program_.protocol = attributes.text("proto").value_or("Simple");
  program_.channels = attributes.number("nchannels", 1, 1024, 1);
  program_.chunks_per_loop = attributes.number("nchunksperloop", 1, kMostChunks);
  program_.in_place = attributes.number("inplace", 0, 1, 1) == 1;
  program_.out_of_place = attributes.number("outofplace", 0, 1, program_.in_place ? 0 : 1) == 1;
  gpus_ = attributes.number("ngpus", 1, kMostGpus);
  program_.root = attributes.number("root", 0, gpus_ - 1, 0);
  set_collective(attributes.text("coll").value_or(""));
}

void ElementReader::set_collective(std::string_view word) {
  const auto* const found =
      std::find_if(kCollectives.begin(), kCollectives.end(), [&](const CollectiveTraits& one) {
        return !word.empty() && word_of(one.collective) == word;
      });
  if (found == kCollectives.end()) {
    fault_.tell(
        fmt::format("coll=\"{}\" is not a collective that can be checked: allreduce, allgather, "
                    "reduce_scatter, alltoall, broadcast, reduce",
                    word));
    return;
  }
  program_.collective = found->collective;
  if (cut_of(found->collective) != VectorCut::none && program_.chunks_per_loop % gpus_ != 0) {
    fault_.tell(
        fmt::format("{} chunks cannot be divided among {} GPUs", program_.chunks_per_loop, gpus_));
  }
}

void ElementReader::gpu(const XmlAttributes& attributes) {
  const int id = attributes.number("id", 0, gpus_ - 1);
  if (id != static_cast<int>(program_.gpus.size())) {
    fault_.tell(fmt::format("found GPU {} where GPU {} is expected", id, program_.gpus.size()));
    return;
  }
  program_.gpus.push_back({.chunks = {attributes.number("i_chunks", 0, kMostChunks),
                                      attributes.number("o_chunks", 0, kMostChunks),
                                      attributes.number("s_chunks", 0, kMostChunks, 0)}});
  complete_sizes(program_, gpus_);
}

void ElementReader::block(const XmlAttributes& attributes) {
  std::vector<ThreadBlock>& blocks = program_.gpus.back().blocks;
  const int id = attributes.number("id", 0, kAny);
  if (id != static_cast<int>(blocks.size())) {
    fault_.tell(fmt::format("found thread block {} where {} is expected", id, blocks.size()));
    return;
  }
  blocks.push_back({.send = attributes.number("send", -1, gpus_ - 1),
                    .receive = attributes.number("recv", -1, gpus_ - 1),
                    .channel = attributes.number("chan", 0, 1023, 0)});
  check_connections(blocks.back(), id);
}

void ElementReader::check_connections(const ThreadBlock& block, int id) {
  const int gpu = static_cast<int>(program_.gpus.size()) - 1;
  if (block.send == gpu || block.receive == gpu) {
    fault_.tell(fmt::format("thread block {} of GPU {} is connected to its own GPU", id, gpu));
  }
  for (const bool sends : {true, false}) {
    const int peer = sends ? block.send : block.receive;
    if (peer >= 0 && !connections_.insert({gpu, peer, block.channel, sends}).second) {
      fault_.tell(fmt::format("two thread blocks of GPU {} {} GPU {} on channel {}", gpu,
                              sends ? "send to" : "receive from", peer, block.channel));
    }
  }
}

void ElementReader::step(const XmlAttributes& attributes) {
  std::vector<Step>& steps = program_.gpus.back().blocks.back().steps;
  const int id = attributes.number("s", 0, kAny);
  if (id != static_cast<int>(steps.size())) {
    fault_.tell(fmt::format("found step {} where {} is expected", id, steps.size()));
    return;
  }
  const std::string_view word = attributes.text("type").value_or("");
  const auto* const found = std::find_if(kSteps.begin(), kSteps.end(),
                                         [&](const StepTraits& one) { return one.word == word; });
  if (found == kSteps.end()) {
    fault_.tell(fmt::format(
        "unknown step type \"{}\"; known are s, r, rcs, rrs, rrc, rrcs, cpy, re, nop", word));
    return;
  }
  const bool moves = found->type != StepType::nop;
  const Step step{.type = found->type,
                  .source = attributes.place("srcbuf", "srcoff", kMostChunks, found->reads_source),
                  .target = attributes.place("dstbuf", "dstoff", kMostChunks, found->writes_target),
                  .chunks = attributes.number("cnt", moves ? 1 : 0, kMostChunks),
                  .depends_on_block = attributes.number("depid", -1, kAny, -1),
                  .depends_on_step = attributes.number("deps", -1, kAny, -1),
                  .tells = attributes.number("hasdep", 0, 1, 0) == 1};
  check_step(step, *found);
  if (++steps_ > kMostSteps) {
    fault_.tell(fmt::format("more than {} steps", kMostSteps));
  }
  steps.push_back(step);
}

void ElementReader::check_step(const Step& step, const StepTraits& traits) {
  const Gpu& gpu = program_.gpus.back();
  const ThreadBlock& block = gpu.blocks.back();
  if ((traits.sends && block.send < 0) || (traits.receives && block.receive < 0)) {
    fault_.tell(fmt::format("step {} of a thread block that {} nobody", traits.word,
                            traits.sends && block.send < 0 ? "sends to" : "receives from"));
  }
  for (const bool is_source : {true, false}) {
    if (is_source ? !traits.reads_source : !traits.writes_target) {
      continue;
    }
    const BufferPlace& used = is_source ? step.source : step.target;
    const int size = gpu.chunks.at(static_cast<std::size_t>(used.buffer));
    if (used.offset + step.chunks > size) {
      fault_.tell(fmt::format("{} {}, {} {} end after the buffer's {} chunks",
                              is_source ? "srcoff" : "dstoff", used.offset, step.chunks,
                              step.chunks == 1 ? "chunk" : "chunks", size));
    }
  }
}

MscclProgram ElementReader::finish() && {
  if (std::string flaw = flaw_of_whole(program_, gpus_, connections_); !flaw.empty()) {
    fault_.tell(std::move(flaw));
  }
  return std::move(program_);
}

}  // namespace unisono::msccl
