#include "mscclpp/read_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/words.h"
#include "mscclpp/limits.h"

namespace unisono::mscclpp {
namespace {

struct Unread {
  std::string_view key;
  std::string_view why;
};

// Keys of operations that this reader ignores.
constexpr std::array<Unread, 2> kUnreadKeys = {
    {{"tbg_info", "groups of thread blocks are not supported; give each block its own chunks"},
     {"iter_context", "pipelines are not supported; write out the operations"}}};
constexpr std::array<Unread, 4> kUnreadOperations = {
    {{"pkt", "packets (protocol LL) are not supported; use the protocol Simple"},
     {"pws", "puts through port channels are not supported; use memory channels"},
     {"flush", "port channels are not supported; use memory channels"},
     {"pipeline", "pipelines are not supported; write out the operations"}}};

[[noreturn]] void refuse_operation(const JsonNode& name) {
  for (const Unread& one : kUnreadOperations) {
    if (name.text().find(one.key) != std::string::npos) {
      name.fail(std::string(one.why));
    }
  }
  if (name.text() == "glres" || name.text() == "gstore") {
    name.fail("switch channels are not supported; use memory channels");
  }
  name.fail(fmt::format("unknown operation {}", in_quotes(name.text())));
}

std::vector<int> read_counters(const JsonNode& ids, const BlockScope& scope, bool is_semaphore) {
  const std::size_t most = is_semaphore ? kMostSemaphoresOfOperation : kMostChannelsOfOperation;
  if (ids.size() < 1 || ids.size() > most) {
    ids.fail(fmt::format("{} of them; the executor supports 1 to {}", ids.size(), most));
  }
  const NumberedList list =
      is_semaphore
          ? NumberedList{.thing = "semaphore", .size = scope.gpu().semaphores.size()}
          : NumberedList{.thing = "channel", .size = scope.channels.size(), .is_of_block = true};
  std::vector<int> counters;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t id = read_index(ids.item(i), list, scope.at);
    const int counter = is_semaphore ? static_cast<int>(id) : scope.channels[id];
    if (std::find(counters.begin(), counters.end(), counter) != counters.end()) {
      ids.item(i).fail("appears twice in one operation");
    }
    counters.push_back(counter);
  }
  return counters;
}

PlanPlace read_place(const JsonNode& node, const BlockScope& scope, bool is_remote) {
  node.allow_only({"type", "buffer_id", "index", "size", "switch_channel_id"});
  if (const auto channel = node.find("switch_channel_id")) {
    channel->fail("switch channels are not supported; use memory channels");
  }
  PlanPlace place{.gpu = scope.at.gpu};
  if (is_remote) {
    const NumberedList list{
        .thing = "remote buffer", .size = scope.buffers.size(), .is_of_block = true};
    place = scope.buffers[read_index(node.at("buffer_id"), list, scope.at)];
  } else {
    if (const auto id = node.find("buffer_id")) {
      id->fail("a buffer of this GPU with its type is expected here");
    }
    place.buffer = read_buffer(node.at("type"));
  }
  const PlanGpu& owner = scope.plan.gpus[static_cast<std::size_t>(place.gpu)];
  const int size = owner.chunks.at(static_cast<std::size_t>(place.buffer));
  place.offset = static_cast<int>(node.at("index").whole(0, kMostChunks));
  place.chunks = static_cast<int>(node.at("size").whole(1, kMostChunks));
  if (place.offset + place.chunks > size) {
    node.fail(fmt::format("index {} and size {} end after the buffer's {} chunks", place.offset,
                          place.chunks, size));
  }
  return place;
}

// The first one is the GPU's own where an operation `adds`.
std::vector<PlanPlace> read_places(const JsonNode& nodes, const BlockScope& scope, bool are_remote,
                                   bool adds) {
  constexpr std::size_t kMostOwn = 2;  // besides those of channels
  if (nodes.size() < 1 || nodes.size() > kMostChannelsOfOperation + kMostOwn) {
    nodes.fail(fmt::format("{} places; the executor supports 1 to {}", nodes.size(),
                           kMostChannelsOfOperation + kMostOwn));
  }
  std::vector<PlanPlace> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    places.push_back(read_place(nodes.item(i), scope, are_remote && !(adds && i == 0)));
  }
  return places;
}

void check_sizes(const JsonNode& node, const PlanOperation& operation) {
  const bool adds = traits_of(operation.type).effect == Effect::adds;
  const std::vector<PlanPlace>& sources = operation.sources;
  const std::vector<PlanPlace>& targets = operation.targets;
  if (!adds && sources.size() != targets.size()) {
    node.fail(fmt::format("{} sources for {} targets", sources.size(), targets.size()));
  }
  const bool has_one_target = operation.type == OperationType::copy ||
                              operation.type == OperationType::reduce ||
                              operation.type == OperationType::read_reduce;
  if (has_one_target && targets.size() != 1) {
    node.at("dst_buff").fail("the executor writes to the first place only");
  }
  for (std::size_t i = 0; i < sources.size() || i < targets.size(); ++i) {
    const int source = sources[std::min(i, sources.size() - 1)].chunks;
    const int target = targets[std::min(i, targets.size() - 1)].chunks;
    if (source != target || (adds && target != targets.front().chunks)) {
      node.fail(fmt::format("{} chunks to {}", source, target));
    }
  }
}

// Refuses operations that the executor runs differently from the plan's text.
void check_quirks(const JsonNode& node, const PlanOperation& operation) {
  for (std::size_t i = 0; i < operation.sources.size(); ++i) {
    if (operation.type == OperationType::put &&
        operation.sources[i].buffer != operation.sources.front().buffer) {
      node.fail("the executor reads all sources of a put from the first one's buffer");
    }
    if (operation.type == OperationType::get &&
        operation.sources[i].offset != operation.targets[i].offset) {
      node.fail(
          "the executor swaps the indices of a get's source and target; only equal indices are "
          "supported");
    }
  }
}

const OperationTraits& read_type(const JsonNode& name) {
  const auto* const found =
      std::find_if(kOperations.begin(), kOperations.end(),
                   [&](const OperationTraits& one) { return one.word == name.text(); });
  if (found == kOperations.end()) {
    refuse_operation(name);
  }
  return *found;
}

}  // namespace

void expect_memory_channel(const JsonNode& type) {
  if (type.text() != "memory") {
    type.fail(fmt::format("{} channels are not supported; use memory channels", type.text()));
  }
}

Buffer read_buffer(const JsonNode& node) {
  const std::optional<Buffer> buffer = executors::buffer_called(node.text());
  if (!buffer) {
    node.fail(fmt::format("{} is not i, o or s", in_quotes(node.text())));
  }
  return *buffer;
}

std::size_t read_index(const JsonNode& node, const NumberedList& list,
                       const executors::StepId& at) {
  if (list.size == 0) {
    const std::string whose = list.is_of_block
                                  ? fmt::format("thread block {} of GPU {}", at.block, at.gpu)
                                  : fmt::format("GPU {}", at.gpu);
    const std::string who = at.step < 0 ? fmt::format("thread block {}", at.block)
                                        : fmt::format("operation {}", at.step);
    node.fail(fmt::format("{} has no {}s, but {} names {} {}", whose, list.thing, who, list.thing,
                          node.whole(0, kMostNumber)));
  }
  return static_cast<std::size_t>(node.whole(0, static_cast<std::int64_t>(list.size) - 1));
}

PlanOperation read_operation(const JsonNode& node, const BlockScope& scope) {
  for (const Unread& one : kUnreadKeys) {
    if (const auto found = node.find(one.key)) {
      found->fail(std::string(one.why));
    }
  }
  const OperationTraits& traits = read_type(node.at("name"));
  node.allow_only({"name", "src_buff", "dst_buff", "channel_ids", "channel_type", "semaphore_ids",
                   "barrier_id", "num_threadblocks", "reduce_op"});
  if (const auto type = node.find("channel_type")) {
    expect_memory_channel(*type);
  }
  if (const auto op = node.find("reduce_op"); op && op->text() != "sum") {
    op->fail("only sums are supported");
  }
  PlanOperation operation{.type = traits.type};
  if (has_data(traits.type)) {
    const bool adds = traits.effect == Effect::adds;
    operation.sources = read_places(node.at("src_buff"), scope, traits.remote_source, adds);
    operation.targets = read_places(node.at("dst_buff"), scope, traits.remote_target, adds);
    check_sizes(node, operation);
    check_quirks(node, operation);
  } else if (traits.type == OperationType::release || traits.type == OperationType::acquire) {
    operation.semaphores = read_counters(node.at("semaphore_ids"), scope, true);
  } else if (traits.effect != Effect::joins) {
    operation.channels = read_counters(node.at("channel_ids"), scope, false);
  } else if (traits.type == OperationType::barrier) {
    operation.barrier = static_cast<int>(node.at("barrier_id").whole(0, kMostBarriers - 1));
    operation.barrier_blocks = static_cast<int>(node.at("num_threadblocks").whole(1, kMostNumber));
  }
  return operation;
}

}  // namespace unisono::mscclpp
