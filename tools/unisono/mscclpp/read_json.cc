#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/json.h"
#include "base/words.h"
#include "msccl/program.h"
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

// All numbers of the lists of the key `list`, in all the entries.
template <typename Check>
std::vector<int> flattened(const JsonNode& entries, std::string_view type, std::string_view list,
                           std::int64_t most, const Check& check) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries.item(i).allow_only({type, list});
    expect_memory_channel(entries.item(i).at(type));
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
    if (const std::string why = too_large(plan_); !why.empty()) {
      gpus.fail(why);
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
    // It is printed, and must not change what a terminal shows.
    if (std::any_of(plan_.name.begin(), plan_.name.end(),
                    [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
      document_.at("name").fail("a name with control characters");
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
    if (gpu.channels.size() > static_cast<std::size_t>(kMostChannels)) {
      node.at("channels")
          .fail(
              fmt::format("{} channels; at most {} are read", gpu.channels.size(), kMostChannels));
    }
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
    const auto ranks = static_cast<std::int64_t>(plan_.gpus.size());
    const std::array<int, 3>& first = plan_.gpus.front().chunks;
    if (std::max(first[0], first[1]) > kMostContributions / ranks / ranks) {
      gpus.fail(fmt::format("{} chunks of {} GPUs are more than are read",
                            std::max(first[0], first[1]), ranks));
    }
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
      const std::array<int, 2> expected = {executors::input_chunks(shape, static_cast<int>(i)),
                                           executors::output_chunks(shape, static_cast<int>(i))};
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
        expect_memory_channel(types.item(j));
      }
      const JsonNode rank = buffer.at("rank");
      const int owner = static_cast<int>(rank.whole(0, gpus() - 1));
      if (owner == id) {
        rank.fail(fmt::format("GPU {} has its own buffers without this", id));
      }
      remote_.push_back({.gpu = owner, .buffer = read_buffer(buffer.at("type"))});
    }
    const JsonNode blocks = node.at("threadblocks");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const JsonNode block = blocks.item(i);
      block.allow_only({"id", "ops", "channels", "remote_buffer_refs"});
      if (block.at("id").whole(0, kMostNumber) != static_cast<std::int64_t>(i)) {
        block.at("id").fail(fmt::format("thread block {} belongs here", i));
      }
      BlockScope scope{.plan = plan_, .gpu = id};
      const std::size_t channels = gpu().channels.size();
      scope.channels = flattened(block.at("channels"), "channel_type", "channel_ids",
                                 static_cast<std::int64_t>(channels), kNoCheck);
      check_most(block.at("channels"), "channels", scope.channels.size(), kMostChannelsOfBlock);
      if (const auto references = block.find("remote_buffer_refs")) {
        for (const int buffer : flattened(*references, "access_channel_type", "remote_buffer_ids",
                                          static_cast<std::int64_t>(remote_.size()), kNoCheck)) {
          scope.buffers.push_back(remote_[static_cast<std::size_t>(buffer)]);
        }
        check_most(*references, "remote buffers", scope.buffers.size(), kMostRemoteBuffersOfBlock);
      }
      ThreadBlock& operations = gpu().blocks.emplace_back();
      const JsonNode nodes = block.at("ops");
      for (std::size_t j = 0; j < nodes.size(); ++j) {
        operations.push_back(read_operation(nodes.item(j), scope));
      }
    }
  }
  static void check_most(const JsonNode& node, std::string_view what, std::size_t count,
                         std::size_t most) {
    if (count > most) {
      node.fail(
          fmt::format("{} {} of a thread block; MSCCL++'s executor takes {}", count, what, most));
    }
  }
  PlanGpu& gpu() { return plan_.gpus[static_cast<std::size_t>(gpu_)]; }

  const JsonNode& document_;
  ExecutionPlan plan_;
  int gpu_ = 0;
  std::vector<PlanPlace> remote_;  // buffers of others that the GPU reaches
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
