// `unisono learn`: a story of the page, by its name.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/wrap.h"
#include "view/deliver.h"

namespace unisono::cli {
namespace {

struct Topic {
  std::string_view name;
  std::string_view summary;
  std::string_view place;  // of the page, as its address says it
};

// In the order in which they are best read.
constexpr Topic kTopics[] = {
    {"collectives", "every collective, before and after: start here", "#learn"},
    {"all_reduce", "a ring, step by step: whose data is where", "#steps"},
    {"all_to_all", "everybody sends a part to everybody",
     "#steps?collective=all_to_all&algorithm=pairwise"},
    {"algorithms", "ring against recursive doubling, on one clock", "#compare"},
    {"cost", "latency, bandwidth, and where the time goes", "#time"},
    {"network", "which links of a machine are busy", "#traffic"},
    {"data", "data parallelism: gradients leave while the backward pass runs",
     "#parallel?story=data"},
    {"zero", "ZeRO: what each rank keeps, and what that costs",
     "#parallel?story=data&set=4.3.7.16384"},
    {"tensor", "tensor and sequence parallelism: matrices cut by columns and rows",
     "#parallel?story=tensor"},
    {"context", "long sequences: keys and values travel around a ring", "#parallel?story=context"},
    {"ulysses", "from a part of the sequence to a part of the heads, and back",
     "#parallel?story=ulysses"},
    {"overlap", "buckets that leave while the rest is computed, and fewer walks through memory",
     "#parallel?story=overlap"},
    {"together", "all axes on one machine: which of them goes over which wire",
     "#parallel?story=together"},
    {"pipeline", "stages, microbatches and the bubble", "#pipeline"},
    {"experts", "mixture of experts: tokens fly to their experts and back", "#moe"},
    {"plan", "which layout a model is fastest with, and what other links would change", "#plan"},
    {"layer", "what one layer moves under any of these: the calculator", "#layer"}};

// Other words for what is above, and what is not worth a line of its own in the list.
constexpr Topic kOthers[] = {
    {"ring", "", "#steps"},
    {"chain", "", "#steps?collective=broadcast&algorithm=chain"},
    {"tree", "", "#steps?collective=broadcast&algorithm=double_tree&form=tree"},
    {"broadcast", "", "#steps?collective=broadcast&algorithm=binomial"},
    {"scatter", "", "#steps?collective=scatter&algorithm=binomial"},
    {"gather", "", "#steps?collective=gather&algorithm=binomial"},
    {"reduce", "", "#steps?collective=reduce&algorithm=binomial"},
    {"all_gather", "", "#steps?collective=all_gather"},
    {"reduce_scatter", "", "#steps?collective=reduce_scatter"},
    {"barrier", "", "#steps?collective=barrier&algorithm=dissemination"},
    {"tp", "", "#parallel?story=tensor"},
    {"sp", "", "#parallel?story=tensor&set=4.1.8192.8192"},
    {"dp", "", "#parallel?story=data"},
    {"ddp", "", "#parallel?story=data"},
    {"fsdp", "", "#parallel?story=data&set=4.3.7.16384"},
    {"cp", "", "#parallel?story=context"},
    {"ring_attention", "", "#parallel?story=context"},
    {"attention", "", "#parallel?story=context"},
    {"sequence", "", "#parallel?story=tensor&set=4.1.8192.8192"},
    {"latency", "", "#time"},
    {"bandwidth", "", "#time"},
    {"topology", "", "#traffic"},
    {"bubble", "", "#pipeline"},
    {"1f1b", "", "#pipeline"},
    {"gpipe", "", "#pipeline"},
    {"fusion", "", "#parallel?story=overlap"},
    {"pp", "", "#pipeline"},
    {"ep", "", "#moe"},
    {"moe", "", "#moe"}};

const Topic* find_topic(std::string_view name) {
  for (const auto topics : {std::span<const Topic>(kTopics), std::span<const Topic>(kOthers)}) {
    const auto found = std::find_if(topics.begin(), topics.end(),
                                    [&](const Topic& candidate) { return candidate.name == name; });
    if (found != topics.end()) {
      return &*found;
    }
  }
  return nullptr;
}

int list_topics(const Console& console) {
  if (console.json()) {
    nlohmann::ordered_json result;
    result["schema"] = "unisono.learn/1";
    for (const Topic& topic : kTopics) {
      result["topics"].push_back({{"name", topic.name}, {"summary", topic.summary}});
    }
    fmt::print("{}\n", result.dump(2));
    return kDone;
  }
  for (const Topic& topic : kTopics) {
    const std::string name = fmt::format("{:<11}", topic.name);
    const std::string text = labelled(name + "  ", topic.summary, console.width());
    fmt::print("{}{}", console.paint(Paint::strong, name), text.substr(name.size()));
  }
  return kDone;
}

int run_learn(const Arguments& arguments, const Console& console) {
  if (arguments.operands().empty()) {
    return list_topics(console);
  }
  const std::string& name = arguments.operands().front();
  const Topic* const topic = find_topic(name);
  if (topic == nullptr) {
    std::vector<std::string_view> names;
    for (const auto topics : {std::span<const Topic>(kTopics), std::span<const Topic>(kOthers)}) {
      for (const Topic& candidate : topics) {
        names.push_back(candidate.name);
      }
    }
    throw UsageError(fmt::format("nothing to learn about '{}' here", name),
                     did_you_mean(name, names), "unisono learn lists the topics");
  }
  nlohmann::ordered_json data;
  data["open"] = topic->place;
  return deliver_page(std::move(data), fmt::format("learn-{}.html", name), arguments, console);
}

constexpr Option kLearnOptions[] = {
    {.name = "lang",
     .value = "LANGUAGE",
     .help = "The language that the page opens in. Without it: that of the browser.",
     .choices = "en|zh"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "Where to write the page; - is standard output. Without it: learn-TOPIC.html."},
    {.name = "no-open", .help = "Write the page, and do not open it on the desktop."}};

}  // namespace

const Command kLearnCommand = {
    .name = "learn",
    .summary = "open a story: how a collective or a kind of parallelism communicates",
    .operands = "[TOPIC]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono learn", "What there is to learn, in a good order."},
                  {"unisono learn tensor", "Tensor parallelism, drawn and played; tp for short."},
                  {"unisono learn experts --lang zh", "In Chinese."}}},
    .description =
        "Writes the page of `unisono view`, open at one topic. Each story has a clock: the arrow "
        "keys step, the space bar plays. Its moves and bytes are those of the schedules that "
        "unisono runs. Besides the topics that are listed it knows every collective, and short "
        "names "
        "such as tp, sp, dp, fsdp, cp, pp, ep and moe.",
    .options = kLearnOptions,
    .run = run_learn};

}  // namespace unisono::cli
