#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "executors/buffers.h"
#include "mscclpp/json.h"

namespace unisono::mscclpp {
namespace {

using executors::letter_of;
using Json = nlohmann::ordered_json;

// Numbers things in the order in which they are first asked for.
template <typename Thing>
class Numbers {
 public:
  int of(const Thing& thing) {
    const auto found = std::find(things_.begin(), things_.end(), thing);
    if (found != things_.end()) {
      return static_cast<int>(found - things_.begin());
    }
    things_.push_back(thing);
    return static_cast<int>(things_.size()) - 1;
  }
  const std::vector<Thing>& all() const { return things_; }

 private:
  std::vector<Thing> things_;
};
using RemoteBuffer = std::pair<int, Buffer>;  // whose

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One operation a line.
std::string lines_of(const std::vector<std::string>& items, std::string_view indent) {
  std::string text;
  for (const std::string& item : items) {
    text += fmt::format("{}\n{}{}", text.empty() ? "" : ",", indent, item);
  }
  return text;
}

class GpuToJson {
 public:
  GpuToJson(int id, const PlanGpu& gpu) : id_(id), gpu_(gpu) {}

  std::string run() {
    std::vector<std::string> blocks;
    for (std::size_t i = 0; i < gpu_.blocks.size(); ++i) {
      blocks.push_back(block(i));
    }
    Json buffers = Json::array();
    for (const auto& [rank, buffer] : buffers_.all()) {
      buffers.push_back({{"rank", rank},
                         {"type", letter_of(buffer)},
                         {"access_channel_types", Json::array({"memory"})}});
    }
    Json semaphores = Json::array();
    for (const int value : gpu_.semaphores) {
      semaphores.push_back({{"init_value", value}});
    }
    Json channels = Json::array();
    if (!gpu_.channels.empty()) {
      channels.push_back({{"channel_type", "memory"}, {"connected_to", gpu_.channels}});
    }
    return fmt::format(
        "{{\"id\":{},\"input_chunks\":{},\"output_chunks\":{},\"scratch_chunks\":{},\n"
        "   \"channels\":{},\n   \"remote_buffers\":{},\n   \"semaphores\":{},\n"
        "   \"threadblocks\":[{}]}}",
        id_, gpu_.chunks[0], gpu_.chunks[1], gpu_.chunks[2], text_of(channels), text_of(buffers),
        text_of(semaphores), lines_of(blocks, "    "));
  }

 private:
  std::string block(std::size_t index) {
    block_channels_ = {};
    block_buffers_ = {};
    std::vector<std::string> operations;
    for (const PlanOperation& operation : gpu_.blocks[index]) {
      operations.push_back(text_of(json_of(operation)));
    }
    Json channels = Json::array();
    if (!block_channels_.all().empty()) {
      channels.push_back({{"channel_type", "memory"}, {"channel_ids", block_channels_.all()}});
    }
    Json references = Json::array();
    if (!block_buffers_.all().empty()) {
      references.push_back(
          {{"access_channel_type", "memory"}, {"remote_buffer_ids", block_buffers_.all()}});
    }
    return fmt::format("{{\"id\":{},\"channels\":{},\"remote_buffer_refs\":{},\"ops\":[{}]}}",
                       index, text_of(channels), text_of(references),
                       lines_of(operations, "     "));
  }

  Json json_of(const PlanOperation& operation) {
    const OperationTraits& traits = traits_of(operation.type);
    Json result = {{"name", traits.word}};
    if (has_data(operation.type)) {
      result["src_buff"] = places(operation.sources);
      result["dst_buff"] = places(operation.targets);
    }
    if (traits.remote_source || traits.remote_target || !operation.channels.empty()) {
      result["channel_type"] = "memory";
    }
    for (const int channel : operation.channels) {
      result["channel_ids"].push_back(block_channels_.of(channel));
    }
    if (!operation.semaphores.empty()) {
      result["semaphore_ids"] = operation.semaphores;
    }
    if (operation.type == OperationType::barrier) {
      result["barrier_id"] = operation.barrier;
      result["num_threadblocks"] = operation.barrier_blocks;
    }
    return result;
  }

  Json places(const std::vector<PlanPlace>& all) {
    Json result = Json::array();
    for (const PlanPlace& place : all) {
      Json one =
          place.gpu == id_
              ? Json{{"type", letter_of(place.buffer)}}
              : Json{{"buffer_id", block_buffers_.of(buffers_.of({place.gpu, place.buffer}))}};
      one["index"] = place.offset;
      one["size"] = place.chunks;
      result.push_back(std::move(one));
    }
    return result;
  }

  int id_;
  const PlanGpu& gpu_;
  Numbers<RemoteBuffer> buffers_;
  Numbers<int> block_channels_;
  Numbers<int> block_buffers_;
};

}  // namespace

std::string to_json(const ExecutionPlan& plan) {
  std::vector<std::string> gpus;
  for (std::size_t i = 0; i < plan.gpus.size(); ++i) {
    gpus.push_back(GpuToJson(static_cast<int>(i), plan.gpus[i]).run());
  }
  return fmt::format(
      "{{\"name\":{},\n \"collective\":\"{}\",\n \"protocol\":\"Simple\",\n \"inplace\":{},\n"
      " \"reuse_resources\":false,\n \"use_double_scratch_buffer\":{},\n"
      " \"num_threads_per_block\":{},\n \"buffer_alignment\":{},\n \"min_message_size\":{},\n"
      " \"max_message_size\":{},\n \"gpus\":[{}]}}\n",
      text_of(plan.name), word_of(plan.collective), plan.in_place, plan.doubles_scratch,
      plan.threads, plan.alignment, plan.least_bytes, plan.most_bytes, lines_of(gpus, "  "));
}

}  // namespace unisono::mscclpp
