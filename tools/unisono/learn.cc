// `unisono learn`: opens a story of the page by its name.
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
#include "cli/language.h"
#include "cli/wrap.h"
#include "view/deliver.h"

namespace unisono::cli {
namespace {

struct Topic {
  std::string_view name;
  std::string_view summary;
  std::string_view chinese;  // the summary
  std::string_view place;    // in the page, as in its address
};

// Topics in the best order for reading: first the chapters of the article, then the lab.
constexpr Topic kTopics[] = {
    {"collectives", "the article from its beginning: start here", "从头阅读文章：从这里开始",
     "#article"},
    {"message", "one message: latency and bytes", "一条消息：延迟与字节",
     "#article?chapter=message"},
    {"broadcast", "one to all, cut into segments: the staircase", "一对多，切成段：阶梯",
     "#article?chapter=broadcast"},
    {"sums", "which collectives reduce, and which only move data", "哪些集合操作求和，哪些只收集",
     "#article?chapter=sums"},
    {"all_reduce", "a reduce_scatter, then an all_gather", "先 reduce_scatter，再 all_gather",
     "#article?chapter=laps"},
    {"cost", "ring or tree: latency, bandwidth, and where the time goes",
     "环还是树：延迟、带宽，时间花在哪里", "#article?chapter=cost"},
    {"data", "data parallelism and ZeRO: what each rank keeps, and what it costs",
     "数据并行与 ZeRO：每个 rank 存什么，代价是什么", "#article?chapter=data"},
    {"tensor", "tensor and sequence parallelism: matrices cut by columns and rows",
     "张量并行与序列并行：矩阵按列、按行切", "#article?chapter=tensor"},
    {"context", "long text: keys and values around a ring, or Ulysses",
     "长文本：K、V 沿环传递，或用 Ulysses", "#article?chapter=context"},
    {"pipeline", "stages, microbatches and the bubble", "流水级、微批与气泡",
     "#article?chapter=pipeline"},
    {"experts", "mixture of experts: tokens travel to their experts and back",
     "专家混合：token 去找专家再回来", "#article?chapter=experts"},
    {"together", "all kinds of parallelism on one machine: which traffic uses which link",
     "所有切法用在一台机器上：哪个走哪条线", "#article?chapter=together"},
    {"failures", "a rank stops: who waits for whom, and who is to blame",
     "一个 rank 停下：谁等谁，该怪谁", "#article?chapter=broken"},
    {"all_to_all", "lab: every rank sends a different part to every other rank",
     "实验室：每个 rank 给其他每个 rank 发不同的部分",
     "#steps?collective=all_to_all&algorithm=pairwise"},
    {"algorithms", "lab: ring against recursive doubling, on one clock",
     "实验室：环与递归倍增，同一个时钟", "#compare"},
    {"network", "lab: which links of a machine are busy", "实验室：机器的哪些链路忙", "#traffic"},
    {"overlap", "lab: buckets that are sent while the rest is computed", "实验室：边算边发的桶",
     "#parallel?story=overlap"},
    {"bits", "lab: one sum under two layouts, with the same bits",
     "实验室：两种布局下的一个和，位相同", "#parallel?story=order"},
    {"reshard", "lab: weights fly from a trainer's layout to an engine's",
     "实验室：权重从训练程序的布局飞到推理引擎的布局", "#parallel?story=reshard"},
    {"plan", "lab: which layout is fastest, and how other links would change that",
     "实验室：哪种布局最快，换链路会怎样", "#plan"},
    {"layer", "lab: a calculator of the data that one layer moves under each of these",
     "实验室：一层在各种切法下移动什么（计算器）", "#layer"}};

// Synonyms of the topics above, and topics that are not listed.
constexpr Topic kOthers[] = {
    {"ring", "", "", "#article?chapter=laps"},
    {"chain", "", "", "#article?chapter=broadcast"},
    {"tree", "", "", "#steps?collective=broadcast&algorithm=double_tree&form=tree"},
    {"scatter", "", "", "#steps?collective=scatter&algorithm=binomial"},
    {"gather", "", "", "#steps?collective=gather&algorithm=binomial"},
    {"reduce", "", "", "#steps?collective=reduce&algorithm=binomial"},
    {"all_gather", "", "", "#steps?collective=all_gather"},
    {"reduce_scatter", "", "", "#steps?collective=reduce_scatter"},
    {"barrier", "", "", "#steps?collective=barrier&algorithm=dissemination"},
    {"tp", "", "", "#article?chapter=tensor"},
    {"sp", "", "", "#parallel?story=tensor&set=4.1.8192.8192"},
    {"sequence", "", "", "#parallel?story=tensor&set=4.1.8192.8192"},
    {"dp", "", "", "#article?chapter=data"},
    {"ddp", "", "", "#article?chapter=data"},
    {"zero", "", "", "#parallel?story=data&set=4.3.7.16384"},
    {"fsdp", "", "", "#parallel?story=data&set=4.3.7.16384"},
    {"cp", "", "", "#article?chapter=context"},
    {"ring_attention", "", "", "#article?chapter=context"},
    {"attention", "", "", "#article?chapter=context"},
    {"ulysses", "", "", "#parallel?story=ulysses"},
    {"latency", "", "", "#article?chapter=message"},
    {"bandwidth", "", "", "#article?chapter=message"},
    {"topology", "", "", "#traffic"},
    {"bubble", "", "", "#article?chapter=pipeline"},
    {"1f1b", "", "", "#article?chapter=pipeline"},
    {"gpipe", "", "", "#article?chapter=pipeline"},
    {"pp", "", "", "#article?chapter=pipeline"},
    {"fusion", "", "", "#parallel?story=overlap"},
    {"rollout", "", "", "#parallel?story=reshard"},
    {"ep", "", "", "#article?chapter=experts"},
    {"moe", "", "", "#article?chapter=experts"}};

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
  const bool is_chinese = asked_language() == Language::chinese;
  for (const Topic& topic : kTopics) {
    const std::string name = fmt::format("{:<11}", topic.name);
    const std::string text =
        labelled(name + "  ", is_chinese ? topic.chinese : topic.summary, console.width());
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
    throw UsageError(fmt::format("there is no topic '{}'", name), did_you_mean(name, names),
                     "unisono learn lists the topics");
  }
  nlohmann::ordered_json data;
  data["open"] = topic->place;
  return deliver_page(std::move(data), fmt::format("learn-{}.html", name), arguments, console);
}

constexpr Option kLearnOptions[] = {
    {.name = "lang",
     .value = "LANGUAGE",
     .help = "The language in which the page opens. Without it: the browser's language.",
     .choices = "en|zh"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "The file to write; - is standard output. Without it: learn-TOPIC.html."},
    {.name = "no-open", .help = "Write the page, but do not open it on the desktop."},
    kServeOption};

}  // namespace

bool is_topic(std::string_view word) {
  return find_topic(word) != nullptr;
}

const Command kLearnCommand = {
    .name = "learn",
    .summary = "open a story: how a collective or a kind of parallelism communicates",
    .operands = "[TOPIC]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono learn", "List the topics, in a good order."},
                  {"unisono learn tensor",
                   "Explain tensor parallelism with pictures and animations; short: tp."},
                  {"unisono learn experts --lang zh --serve 0.0.0.0:8000",
                   "Serve a story in Chinese to a browser on another machine."}}},
    .description =
        "Writes the page of `unisono view`, opened at the article's chapter, or the part of the "
        "lab, on the topic. Its moves and bytes come from the schedules that unisono runs. Besides "
        "the listed topics, each collective is a topic too; short names are tp, sp, dp, fsdp, cp, "
        "pp, ep and moe.",
    .options = kLearnOptions,
    .run = run_learn};

}  // namespace unisono::cli
