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

// What an operation may have and this does not read.
constexpr std::array<Unread, 2> kUnreadKeys = {
    {{"tbg_info", "groups of thread blocks are not read; give each block its own chunks"},
     {"iter_context", "pipelines are not read; write the operations out"}}};
constexpr std::array<Unread, 4> kUnreadOperations = {
    {{"pkt", "packets (protocol LL) are not read; only plans of the protocol Simple are"},
     {"pws", "puts of port channels are not read; only memory channels are"},
     {"flush", "port channels are not read; only memory channels are"},
     {"pipeline", "pipelines are not read; write the operations out"}}};

[[noreturn]] void refuse_operation(const JsonNode& name) {
  for (const Unread& one : kUnreadOperations) {
    if (name.text().find(one.key) != std::string::npos) {
      name.fail(std::string(one.why));
    }
  }
  if (name.text() == "glres" || name.text() == "gstore") {
    name.fail("switch channels are not read; only memory channels are");
  }
  name.fail(fmt::format("no operation is called {}", in_quotes(name.text())));
}

class OperationReader {
 public:
  explicit OperationReader(const BlockScope& scope) : scope_(scope) {}

  PlanOperation run(const JsonNode& node) const {
    for (const Unread& one : kUnreadKeys) {
      if (const auto found = node.find(one.key)) {
        found->fail(std::string(one.why));
      }
    }
    const JsonNode name = node.at("name");
    const auto* const found =
        std::find_if(kOperations.begin(), kOperations.end(),
                     [&](const OperationTraits& one) { return one.word == name.text(); });
    if (found == kOperations.end()) {
      refuse_operation(name);
    }
    node.allow_only({"name", "src_buff", "dst_buff", "channel_ids", "channel_type", "semaphore_ids",
                     "barrier_id", "num_threadblocks", "reduce_op"});
    if (const auto type = node.find("channel_type")) {
      expect_memory_channel(*type);
    }
    if (const auto op = node.find("reduce_op"); op && op->text() != "sum") {
      op->fail("only sums are read");
    }
    PlanOperation result{.type = found->type};
    if (has_data(found->type)) {
      read_data(node, *found, result);
    } else if (found->effect != Effect::joins) {
      read_counters(node, result);
    } else if (found->type == OperationType::barrier) {
      result.barrier = static_cast<int>(node.at("barrier_id").whole(0, kMostBarriers - 1));
      result.barrier_blocks = static_cast<int>(node.at("num_threadblocks").whole(1, kMostNumber));
    }
    return result;
  }

 private:
  const PlanGpu& gpu() const { return scope_.plan.gpus[static_cast<std::size_t>(scope_.gpu)]; }

  void read_counters(const JsonNode& node, PlanOperation& operation) const {
    const bool is_semaphore =
        operation.type == OperationType::release || operation.type == OperationType::acquire;
    const JsonNode ids = node.at(is_semaphore ? "semaphore_ids" : "channel_ids");
    const std::size_t most = is_semaphore ? kMostSemaphoresOfOperation : kMostChannelsOfOperation;
    if (ids.size() < 1 || ids.size() > most) {
      ids.fail(fmt::format("{} of them; the executor takes 1 to {}", ids.size(), most));
    }
    std::vector<int>& counters = is_semaphore ? operation.semaphores : operation.channels;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t all = is_semaphore ? gpu().semaphores.size() : scope_.channels.size();
      const auto id =
          static_cast<std::size_t>(ids.item(i).whole(0, static_cast<std::int64_t>(all) - 1));
      const int counter = is_semaphore ? static_cast<int>(id) : scope_.channels[id];
      if (std::find(counters.begin(), counters.end(), counter) != counters.end()) {
        ids.item(i).fail("comes twice in one operation");
      }
      counters.push_back(counter);
    }
  }

  void read_data(const JsonNode& node, const OperationTraits& traits,
                 PlanOperation& operation) const {
    const JsonNode sources = node.at("src_buff");
    const JsonNode targets = node.at("dst_buff");
    const bool adds = traits.effect == Effect::adds;
    operation.sources = places(sources, traits.remote_source, adds);
    operation.targets = places(targets, traits.remote_target, adds);
    if (!adds && operation.sources.size() != operation.targets.size()) {
      node.fail(fmt::format("{} sources for {} targets", operation.sources.size(),
                            operation.targets.size()));
    }
    const bool has_one_target = traits.type == OperationType::copy ||
                                traits.type == OperationType::reduce ||
                                traits.type == OperationType::read_reduce;
    if (has_one_target && operation.targets.size() != 1) {
      targets.fail("the executor writes to the first place only");
    }
    const int chunks = operation.targets.front().chunks;
    for (std::size_t i = 0; i < operation.sources.size() || i < operation.targets.size(); ++i) {
      const int source = operation.sources[std::min(i, operation.sources.size() - 1)].chunks;
      const int target = operation.targets[std::min(i, operation.targets.size() - 1)].chunks;
      if (source != target || (adds && target != chunks)) {
        node.fail(fmt::format("{} chunks to {}", source, target));
      }
    }
    check_quirks(node, operation);
  }

  // What the executor does otherwise than the words of the plan say.
  static void check_quirks(const JsonNode& node, const PlanOperation& operation) {
    for (std::size_t i = 0; i < operation.sources.size(); ++i) {
      if (operation.type == OperationType::put &&
          operation.sources[i].buffer != operation.sources.front().buffer) {
        node.fail("the executor reads all sources of a put in the buffer of the first one");
      }
      if (operation.type == OperationType::get &&
          operation.sources[i].offset != operation.targets[i].offset) {
        node.fail(
            "the executor takes the index of a get's source for its target, and that of "
            "the target for the source; only equal ones are read");
      }
    }
  }

  // The first one is the GPU's own where an operation `adds`.
  std::vector<PlanPlace> places(const JsonNode& nodes, bool are_remote, bool adds) const {
    constexpr std::size_t kMostOwn = 2;  // besides those of channels
    if (nodes.size() < 1 || nodes.size() > kMostChannelsOfOperation + kMostOwn) {
      nodes.fail(fmt::format("{} places; the executor takes 1 to {}", nodes.size(),
                             kMostChannelsOfOperation + kMostOwn));
    }
    std::vector<PlanPlace> result;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const JsonNode node = nodes.item(i);
      node.allow_only({"type", "buffer_id", "index", "size", "switch_channel_id"});
      if (const auto channel = node.find("switch_channel_id")) {
        channel->fail("switch channels are not read; only memory channels are");
      }
      PlanPlace place{.gpu = scope_.gpu};
      if (are_remote && !(adds && i == 0)) {
        const auto most = static_cast<std::int64_t>(scope_.buffers.size()) - 1;
        const auto id = static_cast<std::size_t>(node.at("buffer_id").whole(0, most));
        place = scope_.buffers[id];
      } else {
        if (const auto id = node.find("buffer_id")) {
          id->fail("a buffer of this GPU belongs here, with its type");
        }
        place.buffer = read_buffer(node.at("type"));
      }
      const auto& gpu = scope_.plan.gpus[static_cast<std::size_t>(place.gpu)];
      const int size = gpu.chunks.at(static_cast<std::size_t>(place.buffer));
      place.offset = static_cast<int>(node.at("index").whole(0, kMostChunks));
      place.chunks = static_cast<int>(node.at("size").whole(1, kMostChunks));
      if (place.offset + place.chunks > size) {
        node.fail(fmt::format("index {} and size {} end behind the {} chunks of the buffer",
                              place.offset, place.chunks, size));
      }
      result.push_back(place);
    }
    return result;
  }

  const BlockScope& scope_;
};

}  // namespace

void expect_memory_channel(const JsonNode& type) {
  if (type.text() != "memory") {
    type.fail(fmt::format("{} channels are not read; only memory channels are", type.text()));
  }
}

Buffer read_buffer(const JsonNode& node) {
  const std::string_view letters = "ios";
  const std::size_t found = node.text().size() == 1 ? letters.find(node.text()) : std::string::npos;
  if (found == std::string::npos) {
    node.fail(fmt::format("{} is not i, o or s", in_quotes(node.text())));
  }
  return static_cast<Buffer>(found);
}

PlanOperation read_operation(const JsonNode& node, const BlockScope& scope) {
  return OperationReader(scope).run(node);
}

}  // namespace unisono::mscclpp
