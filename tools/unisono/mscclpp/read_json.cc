#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "base/words.h"
#include "msccl/program.h"
#include "mscclpp/json.h"

namespace unisono::mscclpp {
namespace {

constexpr std::int64_t kMostGpus = 4096;
constexpr std::int64_t kMostChunks = 1 << 20;
constexpr std::int64_t kMostNumber = 1 << 20;  // of blocks, channels, semaphores
constexpr std::size_t kMostName = 1024;

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

void expect_memory(const JsonNode& type) {
  if (type.text() != "memory") {
    type.fail(fmt::format("{} channels are not read; only memory channels are", type.text()));
  }
}

Buffer buffer_of(const JsonNode& node) {
  const std::string_view letters = "ios";
  const std::size_t found = node.text().size() == 1 ? letters.find(node.text()) : std::string::npos;
  if (found == std::string::npos) {
    node.fail(fmt::format("{} is not i, o or s", in_quotes(node.text())));
  }
  return static_cast<Buffer>(found);
}

std::int64_t number_of(const JsonNode& node, std::string_view key, std::int64_t least,
                       std::int64_t most, std::int64_t fallback) {
  const std::optional<JsonNode> found = node.find(key);
  return found ? found->whole(least, most) : fallback;
}

// All numbers of the lists of the key `list`, in all the entries.
template <typename Check>
std::vector<int> flattened(const JsonNode& entries, std::string_view type, std::string_view list,
                           std::int64_t most, const Check& check) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries.item(i).allow_only({type, list});
    expect_memory(entries.item(i).at(type));
    const JsonNode values = entries.item(i).at(list);
    for (std::size_t j = 0; j < values.size(); ++j) {
      numbers.push_back(static_cast<int>(values.item(j).whole(0, most - 1)));
      check(values.item(j), numbers.back());
    }
  }
  return numbers;
}
constexpr auto kNoCheck = [](const JsonNode&, int) {};

class PlanReader {
 public:
  explicit PlanReader(const JsonNode& document) : document_(document) {}

  ExecutionPlan run() {
    read_head();
    const JsonNode gpus = document_.at("gpus");
    if (gpus.size() < 1 || gpus.size() > static_cast<std::size_t>(kMostGpus)) {
      gpus.fail(fmt::format("{} GPUs; 1 to {} are read", gpus.size(), kMostGpus));
    }
    plan_.gpus.resize(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      read_shape(gpus.item(i), static_cast<int>(i));
    }
    check_chunks(gpus);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      read_blocks(gpus.item(i), static_cast<int>(i));
    }
    return std::move(plan_);
  }

 private:
  void read_head() {
    document_.allow_only({"name", "collective", "protocol", "inplace", "reuse_resources", "gpus",
                          "num_threads_per_block", "use_double_scratch_buffer", "buffer_alignment",
                          "min_message_size", "max_message_size"});
    plan_.name = document_.at("name").text();
    if (plan_.name.size() > kMostName) {
      document_.at("name").fail("a name of more than 1024 bytes");
    }
    const JsonNode protocol = document_.at("protocol");
    if (protocol.text() != "Simple") {
      protocol.fail("only plans of the protocol Simple are read, not those that send packets");
    }
    const JsonNode collective = document_.at("collective");
    const auto* const found =
        std::find_if(kCollectives.begin(), kCollectives.end(), [&](const CollectiveTraits& one) {
          return !word_of(one.collective).empty() && word_of(one.collective) == collective.text();
        });
    if (found == kCollectives.end()) {
      collective.fail(
          fmt::format("{} says no collective that could be checked: allreduce, allgather, "
                      "reducescatter, alltoall, broadcast, reduce",
                      in_quotes(collective.text())));
    }
    plan_.collective = found->collective;
    plan_.in_place = document_.at("inplace").truth();
    if (const auto reuse = document_.find("reuse_resources"); reuse && reuse->truth()) {
      reuse->fail("true lays scratch of different chunks over each other, which is not read");
    }
    if (const auto doubles = document_.find("use_double_scratch_buffer")) {
      plan_.doubles_scratch = doubles->truth();
    }
    plan_.threads = static_cast<int>(number_of(document_, "num_threads_per_block", 1, 1024, 1024));
    plan_.alignment = static_cast<int>(number_of(document_, "buffer_alignment", 1, 1 << 30, 16));
    plan_.least_bytes = bytes("min_message_size", plan_.least_bytes);
    plan_.most_bytes = bytes("max_message_size", plan_.most_bytes);
  }

  // The largest of all is more than a double holds, and stands for no limit.
  std::uint64_t bytes(std::string_view key, std::uint64_t fallback) const {
    constexpr double kMostExact = 9007199254740992.0;  // 2^53
    const std::optional<JsonNode> found = document_.find(key);
    if (!found) {
      return fallback;
    }
    const double value = found->number(0, 18446744073709551616.0);
    return value < kMostExact ? static_cast<std::uint64_t>(value)
                              : std::numeric_limits<std::uint64_t>::max();
  }

  int gpus() const { return static_cast<int>(plan_.gpus.size()); }

  void read_shape(const JsonNode& node, int id) {
    if (node.find("inputChunks") || node.find("i_cids")) {
      node.fail("an older form of plans; this reads the one with input_chunks");
    }
    node.allow_only({"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks",
                     "channels", "remote_buffers", "semaphores"});
    const JsonNode number = node.at("id");
    if (number.whole(0, kMostGpus) != id) {
      number.fail(
          fmt::format("GPU {} stands where GPU {} belongs", number.whole(0, kMostGpus), id));
    }
    PlanGpu& gpu = plan_.gpus[static_cast<std::size_t>(id)];
    gpu.chunks = {static_cast<int>(node.at("input_chunks").whole(1, kMostChunks)),
                  static_cast<int>(node.at("output_chunks").whole(1, kMostChunks)),
                  static_cast<int>(node.at("scratch_chunks").whole(0, kMostChunks))};
    gpu.channels = flattened(node.at("channels"), "channel_type", "connected_to", gpus(),
                             [&](const JsonNode& peer, int value) {
                               if (value == id) {
                                 peer.fail(fmt::format("GPU {} is connected to itself", id));
                               }
                             });
    if (const auto semaphores = node.find("semaphores")) {
      for (std::size_t i = 0; i < semaphores->size(); ++i) {
        semaphores->item(i).allow_only({"init_value"});
        gpu.semaphores.push_back(
            static_cast<int>(semaphores->item(i).at("init_value").whole(0, kMostNumber)));
      }
    }
  }

  // The executor cuts all buffers into chunks of one size.
  void check_chunks(const JsonNode& gpus) const {
    Schedule shape = shape_of(plan_);
    const Holding input = traits_of(plan_.collective).input;
    if ((input == Holding::part || traits_of(plan_.collective).output == Holding::part) &&
        shape.chunks % shape.ranks != 0) {
      gpus.fail(
          fmt::format("{} chunks cannot be divided among {} GPUs", shape.chunks, shape.ranks));
    }
    if (input == Holding::pairs && plan_.gpus.front().chunks[0] % shape.ranks != 0) {
      gpus.fail(fmt::format("{} chunks cannot be divided among {} GPUs",
                            plan_.gpus.front().chunks[0], shape.ranks));
    }
    for (std::size_t i = 0; i < plan_.gpus.size(); ++i) {
      shape.root = static_cast<int>(i);  // whoever it is: it has both, and the others unused ones
      const std::array<int, 2> expected = {msccl::input_chunks(shape, static_cast<int>(i)),
                                           msccl::output_chunks(shape, static_cast<int>(i))};
      for (std::size_t buffer = 0; buffer < expected.size(); ++buffer) {
        const int chunks = plan_.gpus[i].chunks.at(buffer);
        if (chunks != expected.at(buffer)) {
          gpus.item(i).fail(fmt::format("{} {} chunks, where the collective has {}", chunks,
                                        buffer == 0 ? "input" : "output", expected.at(buffer)));
        }
      }
    }
  }

  void read_blocks(const JsonNode& node, int id) {
    gpu_ = id;
    remote_.clear();
    const JsonNode buffers = node.at("remote_buffers");
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const JsonNode buffer = buffers.item(i);
      buffer.allow_only({"rank", "type", "access_channel_types"});
      const JsonNode types = buffer.at("access_channel_types");
      for (std::size_t j = 0; j < types.size(); ++j) {
        expect_memory(types.item(j));
      }
      const JsonNode rank = buffer.at("rank");
      const int owner = static_cast<int>(rank.whole(0, gpus() - 1));
      if (owner == id) {
        rank.fail(fmt::format("GPU {} has its own buffers without this", id));
      }
      remote_.push_back({.gpu = owner, .buffer = buffer_of(buffer.at("type"))});
    }
    const JsonNode blocks = node.at("threadblocks");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const JsonNode block = blocks.item(i);
      block.allow_only({"id", "ops", "channels", "remote_buffer_refs"});
      if (block.at("id").whole(0, kMostNumber) != static_cast<std::int64_t>(i)) {
        block.at("id").fail(fmt::format("thread block {} belongs here", i));
      }
      const std::size_t channels = gpu().channels.size();
      block_channels_ = flattened(block.at("channels"), "channel_type", "channel_ids",
                                  static_cast<std::int64_t>(channels), kNoCheck);
      block_buffers_.clear();
      if (const auto references = block.find("remote_buffer_refs")) {
        block_buffers_ = flattened(*references, "access_channel_type", "remote_buffer_ids",
                                   static_cast<std::int64_t>(remote_.size()), kNoCheck);
      }
      ThreadBlock& operations = gpu().blocks.emplace_back();
      const JsonNode nodes = block.at("ops");
      for (std::size_t j = 0; j < nodes.size(); ++j) {
        operations.push_back(operation(nodes.item(j)));
      }
    }
  }
  PlanGpu& gpu() { return plan_.gpus[static_cast<std::size_t>(gpu_)]; }

  PlanOperation operation(const JsonNode& node) {
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
      expect_memory(*type);
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

  void read_counters(const JsonNode& node, PlanOperation& operation) {
    const bool is_semaphore =
        operation.type == OperationType::release || operation.type == OperationType::acquire;
    const JsonNode ids = node.at(is_semaphore ? "semaphore_ids" : "channel_ids");
    const std::size_t most = is_semaphore ? kMostSemaphoresOfOperation : kMostChannelsOfOperation;
    if (ids.size() < 1 || ids.size() > most) {
      ids.fail(fmt::format("{} of them; the executor takes 1 to {}", ids.size(), most));
    }
    std::vector<int>& counters = is_semaphore ? operation.semaphores : operation.channels;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t all = is_semaphore ? gpu().semaphores.size() : block_channels_.size();
      const auto id =
          static_cast<std::size_t>(ids.item(i).whole(0, static_cast<std::int64_t>(all) - 1));
      const int counter = is_semaphore ? static_cast<int>(id) : block_channels_[id];
      if (std::find(counters.begin(), counters.end(), counter) != counters.end()) {
        ids.item(i).fail("comes twice in one operation");
      }
      counters.push_back(counter);
    }
  }

  void read_data(const JsonNode& node, const OperationTraits& traits, PlanOperation& operation) {
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
  std::vector<PlanPlace> places(const JsonNode& nodes, bool are_remote, bool adds) {
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
      PlanPlace place{.gpu = gpu_};
      if (are_remote && !(adds && i == 0)) {
        const auto most = static_cast<std::int64_t>(block_buffers_.size()) - 1;
        const auto id = static_cast<std::size_t>(node.at("buffer_id").whole(0, most));
        place = remote_[static_cast<std::size_t>(block_buffers_[id])];
      } else {
        if (const auto id = node.find("buffer_id")) {
          id->fail("a buffer of this GPU belongs here, with its type");
        }
        place.buffer = buffer_of(node.at("type"));
      }
      const auto& gpu = plan_.gpus[static_cast<std::size_t>(place.gpu)];
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

  const JsonNode& document_;
  ExecutionPlan plan_;
  int gpu_ = 0;
  std::vector<PlanPlace> remote_;    // buffers of the GPU that is read
  std::vector<int> block_channels_;  // of the block that is read
  std::vector<int> block_buffers_;
};

}  // namespace

bool is_plan(std::string_view text) {
  return text.find("\"gpus\"") != std::string_view::npos &&
         text.find("\"unisono.schedule/") == std::string_view::npos;
}

Parsed<ExecutionPlan> parse_plan(std::string_view text) {
  return parse_json_as<ExecutionPlan>(
      text, [](const JsonNode& document) { return PlanReader(document).run(); });
}

}  // namespace unisono::mscclpp
