#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/json.h"
#include "base/words.h"
#include "executors/buffers.h"
#include "mscclpp/json.h"
#include "mscclpp/limits.h"
#include "mscclpp/read_operation.h"

namespace unisono::mscclpp {
namespace {

constexpr std::size_t kMostName = 1024;

std::int64_t number_of(const JsonNode& node, std::string_view key, std::int64_t least,
                       std::int64_t most, std::int64_t fallback) {
  const std::optional<JsonNode> found = node.find(key);
  return found ? found->whole(least, most) : fallback;
}

// Returns the results of `read` for each number in the lists of the key `list`, in all entries.
template <typename Read>
std::vector<int> flattened(const JsonNode& entries, std::string_view type, std::string_view list,
                           const Read& read) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries.item(i).allow_only({type, list});
    expect_memory_channel(entries.item(i).at(type));
    const JsonNode values = entries.item(i).at(list);
    for (std::size_t j = 0; j < values.size(); ++j) {
      numbers.push_back(static_cast<int>(read(values.item(j))));
    }
  }
  return numbers;
}

// It is printed, and must not change what a terminal shows.
std::string read_name(const JsonNode& node) {
  const std::string& name = node.text();
  if (name.size() > kMostName) {
    node.fail("a name of more than 1024 bytes");
  }
  if (std::any_of(name.begin(), name.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
    node.fail("a name with control characters");
  }
  return name;
}

Collective read_collective(const JsonNode& node) {
  const auto* const found =
      std::find_if(kCollectives.begin(), kCollectives.end(), [&](const CollectiveTraits& one) {
        return !word_of(one.collective).empty() && word_of(one.collective) == node.text();
      });
  if (found == kCollectives.end()) {
    node.fail(
        fmt::format("{} is not a collective that can be checked: allreduce, allgather, "
                    "reducescatter, alltoall, broadcast, reduce",
                    in_quotes(node.text())));
  }
  return found->collective;
}

// The largest of all is more than a double holds, and stands for no limit.
std::uint64_t read_bytes(const JsonNode& document, std::string_view key, std::uint64_t fallback) {
  constexpr double kMostExact = 9007199254740992.0;  // 2^53
  const std::optional<JsonNode> found = document.find(key);
  if (!found) {
    return fallback;
  }
  const double value = found->number(0, 18446744073709551616.0);
  return value < kMostExact ? static_cast<std::uint64_t>(value)
                            : std::numeric_limits<std::uint64_t>::max();
}

// All but its GPUs.
ExecutionPlan read_head(const JsonNode& document) {
  document.allow_only({"name", "collective", "protocol", "inplace", "reuse_resources", "gpus",
                       "num_threads_per_block", "use_double_scratch_buffer", "buffer_alignment",
                       "min_message_size", "max_message_size"});
  ExecutionPlan plan;
  plan.name = read_name(document.at("name"));
  const JsonNode protocol = document.at("protocol");
  if (protocol.text() != "Simple") {
    protocol.fail("only plans of the protocol Simple are supported, not those that send packets");
  }
  plan.collective = read_collective(document.at("collective"));
  plan.in_place = document.at("inplace").truth();
  if (const auto reuse = document.find("reuse_resources"); reuse && reuse->truth()) {
    reuse->fail("true overlaps the scratch of different chunks, which is not supported");
  }
  if (const auto doubles = document.find("use_double_scratch_buffer")) {
    plan.doubles_scratch = doubles->truth();
  }
  plan.threads = static_cast<int>(number_of(document, "num_threads_per_block", 1, 1024, 1024));
  plan.alignment = static_cast<int>(number_of(document, "buffer_alignment", 1, 1 << 30, 16));
  plan.least_bytes = read_bytes(document, "min_message_size", plan.least_bytes);
  plan.most_bytes = read_bytes(document, "max_message_size", plan.most_bytes);
  return plan;
}

// All but its thread blocks, of GPU `id` of `gpus`.
PlanGpu read_gpu(const JsonNode& node, int id, int gpus) {
  if (node.find("inputChunks") || node.find("i_cids")) {
    node.fail("an older plan format; only the one with input_chunks is supported");
  }
  node.allow_only({"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks",
                   "channels", "remote_buffers", "semaphores"});
  const JsonNode number = node.at("id");
  if (number.whole(0, kMostGpus) != id) {
    number.fail(
        fmt::format("found GPU {} where GPU {} is expected", number.whole(0, kMostGpus), id));
  }
  PlanGpu gpu;
  gpu.chunks = {static_cast<int>(node.at("input_chunks").whole(1, kMostChunks)),
                static_cast<int>(node.at("output_chunks").whole(1, kMostChunks)),
                static_cast<int>(node.at("scratch_chunks").whole(0, kMostChunks))};
  gpu.channels =
      flattened(node.at("channels"), "channel_type", "connected_to", [&](const JsonNode& peer) {
        const std::int64_t other = peer.whole(0, gpus - 1);
        if (other == id) {
          peer.fail(fmt::format("GPU {} is connected to itself", id));
        }
        return other;
      });
  if (gpu.channels.size() > static_cast<std::size_t>(kMostChannels)) {
    node.at("channels")
        .fail(fmt::format("{} channels; at most {} are read", gpu.channels.size(), kMostChannels));
  }
  if (const auto semaphores = node.find("semaphores")) {
    for (std::size_t i = 0; i < semaphores->size(); ++i) {
      semaphores->item(i).allow_only({"init_value"});
      gpu.semaphores.push_back(
          static_cast<int>(semaphores->item(i).at("init_value").whole(0, kMostNumber)));
    }
  }
  return gpu;
}

// The executor cuts all buffers into chunks of one size.
void check_chunks(const JsonNode& gpus, const ExecutionPlan& plan) {
  const auto ranks = static_cast<std::int64_t>(plan.gpus.size());
  const std::array<int, 3>& first = plan.gpus.front().chunks;
  if (std::max(first[0], first[1]) > kMostContributions / ranks / ranks) {
    gpus.fail(fmt::format("{} chunks of {} GPUs exceed what can be read",
                          std::max(first[0], first[1]), ranks));
  }
  Schedule shape = shape_of(plan);
  const Holding input = traits_of(plan.collective).input;
  if ((input == Holding::part || traits_of(plan.collective).output == Holding::part) &&
      shape.chunks % shape.ranks != 0) {
    gpus.fail(fmt::format("{} chunks cannot be divided among {} GPUs", shape.chunks, shape.ranks));
  }
  if (input == Holding::pairs && first[0] % shape.ranks != 0) {
    gpus.fail(fmt::format("{} chunks cannot be divided among {} GPUs", first[0], shape.ranks));
  }
  for (std::size_t i = 0; i < plan.gpus.size(); ++i) {
    // Every GPU has the buffers of a root. If it is not the root, it does not use one of them.
    shape.root = static_cast<int>(i);
    const std::array<int, 2> expected = {executors::input_chunks(shape, static_cast<int>(i)),
                                         executors::output_chunks(shape, static_cast<int>(i))};
    for (std::size_t buffer = 0; buffer < expected.size(); ++buffer) {
      const int chunks = plan.gpus[i].chunks.at(buffer);
      if (chunks != expected.at(buffer)) {
        gpus.item(i).fail(fmt::format("{} {} chunks, but the collective has {}", chunks,
                                      buffer == 0 ? "input" : "output", expected.at(buffer)));
      }
    }
  }
}

// The buffers of others that GPU `id` of `gpus` reaches.
std::vector<PlanPlace> read_remote_buffers(const JsonNode& nodes, int id, int gpus) {
  std::vector<PlanPlace> buffers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const JsonNode node = nodes.item(i);
    node.allow_only({"rank", "type", "access_channel_types"});
    const JsonNode types = node.at("access_channel_types");
    for (std::size_t j = 0; j < types.size(); ++j) {
      expect_memory_channel(types.item(j));
    }
    const JsonNode rank = node.at("rank");
    const int owner = static_cast<int>(rank.whole(0, gpus - 1));
    if (owner == id) {
      rank.fail(fmt::format("GPU {} has its own buffers without this", id));
    }
    buffers.push_back({.gpu = owner, .buffer = read_buffer(node.at("type"))});
  }
  return buffers;
}

void check_most(const JsonNode& node, std::string_view what, std::size_t count, std::size_t most) {
  if (count > most) {
    node.fail(
        fmt::format("{} {} of a thread block; MSCCL++'s executor supports {}", count, what, most));
  }
}

// The lists of the block; `remote` are the buffers of others that its GPU reaches.
void read_scope(const JsonNode& block, const std::vector<PlanPlace>& remote, BlockScope& scope) {
  const NumberedList channels{.thing = "channel", .size = scope.gpu().channels.size()};
  scope.channels =
      flattened(block.at("channels"), "channel_type", "channel_ids",
                [&](const JsonNode& id) { return read_index(id, channels, scope.at); });
  check_most(block.at("channels"), "channels", scope.channels.size(), kMostChannelsOfBlock);
  const auto references = block.find("remote_buffer_refs");
  if (!references) {
    return;
  }
  const NumberedList buffers{.thing = "remote buffer", .size = remote.size()};
  for (const int buffer :
       flattened(*references, "access_channel_type", "remote_buffer_ids",
                 [&](const JsonNode& id) { return read_index(id, buffers, scope.at); })) {
    scope.buffers.push_back(remote[static_cast<std::size_t>(buffer)]);
  }
  check_most(*references, "remote buffers", scope.buffers.size(), kMostRemoteBuffersOfBlock);
}

ThreadBlock read_block(const JsonNode& node, const std::vector<PlanPlace>& remote,
                       BlockScope scope) {
  node.allow_only({"id", "ops", "channels", "remote_buffer_refs"});
  if (node.at("id").whole(0, kMostNumber) != scope.at.block) {
    node.at("id").fail(fmt::format("thread block {} is expected here", scope.at.block));
  }
  read_scope(node, remote, scope);
  ThreadBlock block;
  const JsonNode operations = node.at("ops");
  for (std::size_t i = 0; i < operations.size(); ++i) {
    scope.at.step = static_cast<int>(i);
    block.push_back(read_operation(operations.item(i), scope));
  }
  return block;
}

ExecutionPlan read_plan(const JsonNode& document) {
  ExecutionPlan plan = read_head(document);
  const JsonNode gpus = document.at("gpus");
  if (gpus.size() < 1 || gpus.size() > static_cast<std::size_t>(kMostGpus)) {
    gpus.fail(fmt::format("{} GPUs; 1 to {} are read", gpus.size(), kMostGpus));
  }
  const int count = static_cast<int>(gpus.size());
  for (int id = 0; id < count; ++id) {
    plan.gpus.push_back(read_gpu(gpus.item(static_cast<std::size_t>(id)), id, count));
  }
  check_chunks(gpus, plan);
  for (int id = 0; id < count; ++id) {
    const JsonNode gpu = gpus.item(static_cast<std::size_t>(id));
    const std::vector<PlanPlace> remote = read_remote_buffers(gpu.at("remote_buffers"), id, count);
    const JsonNode blocks = gpu.at("threadblocks");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const executors::StepId at{.gpu = id, .block = static_cast<int>(i)};
      plan.gpus[static_cast<std::size_t>(id)].blocks.push_back(
          read_block(blocks.item(i), remote, {.plan = plan, .at = at}));
    }
  }
  if (const std::string why = too_large(plan); !why.empty()) {
    gpus.fail(why);
  }
  return plan;
}

}  // namespace

bool is_plan(std::string_view text) {
  return text.find("\"gpus\"") != std::string_view::npos &&
         text.find("\"unisono.schedule/") == std::string_view::npos;
}

Parsed<ExecutionPlan> parse_plan(std::string_view text) {
  return parse_json_as<ExecutionPlan>(text, read_plan);
}

}  // namespace unisono::mscclpp
