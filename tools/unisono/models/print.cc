// The output of `unisono plan-model`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes_text.h"
#include "cli/text_table.h"
#include "cli/wrap.h"
#include "models/models.h"
#include "plan/plan.h"
#include "planner/parts.h"

namespace unisono::cli {
namespace {

using planner::MemoryParts;
using planner::ServingEstimate;
using planner::TrainingEstimate;

constexpr double kGiga = 1e9;

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  std::string text;
  for (int i = 0; i < width; ++i) {
    text += i < full ? "█" : "░";
  }
  return text;
}

std::string percent(double share) {
  return fmt::format("{:.0f}%", share * 100);
}

double communication(const planner::StepParts& parts) {
  return parts.tensor + parts.context + parts.experts + parts.pipeline + parts.data;
}

// Returns the interval that contains nine of ten steps: "23.1 s to 31.9 s".
std::string interval(const TrainingEstimate& estimate) {
  return fmt::format("{} to {}", time_text(estimate.low_s), time_text(estimate.high_s));
}

std::string constants_text(const ModelQuestion& question) {
  const planner::Constants& constants = question.cluster.device.constants;
  return fmt::format(
      "slowdown against the data sheet: compute {:.2f}x, memory {:.2f}x, network {:.2f}x{}; "
      "fitted to {}",
      constants.compute, constants.memory, constants.network,
      question.shape.has_experts() ? fmt::format(", experts {:.2f}x", constants.experts) : "",
      constants.source);
}

void print_head(const ModelQuestion& question, const std::string& task,
                const std::vector<std::string>& lines, const Console& console) {
  const planner::ModelShape& shape = question.shape;
  const planner::DeviceModel& device = question.cluster.device;
  const auto print = [&console](std::string_view label, const std::string& text) {
    fmt::print("{}", labelled(label, text, console.width()));
  };
  const std::string name = shape.name.empty() ? "model" : shape.name;
  print(name + "  ", fmt::format("{:.3g} B weights{}, {} x {}: {}", total_weights(shape) / kGiga,
                                 shape.has_experts() ? fmt::format(" ({:.3g} B active)",
                                                                   active_weights(shape) / kGiga)
                                                     : "",
                                 question.cluster.devices, device.name, task));
  for (const std::string& line : lines) {
    print("", line);
  }
  for (const std::string& line : question.fitted) {
    print("", line);
  }
  for (const std::string& line : question.account.lines()) {
    print("", line);
  }
  fmt::print("\n");
}

// "mxfp4 as stored (60.7 GiB; not quantised: attention), multiplied in bf16"
std::string stored_text(const ModelQuestion& question, const planner::ServingTask& task) {
  const double bytes = bytes_of(part_weights(question.shape), *task.stored);
  return fmt::format("{} as stored ({}; not quantised: {}), multiplied in {}", task.stored->name,
                     format_bytes(bytes), task.stored->plain_parts,
                     planner::to_string(task.weights));
}

template <typename Estimate>
void print_refused(const planner::Ranking<Estimate>& ranking, const Console& console) {
  std::string text =
      fmt::format("{} tried, {} fit{}", times(static_cast<std::size_t>(ranking.tried), "layout"),
                  ranking.fitting, ranking.fitting == 1 ? "s" : "");
  for (const planner::Refusal& refusal : ranking.refused) {
    text += fmt::format("; {} refused: {}", refusal.layouts, refusal.why);
  }
  fmt::print("{}", wrap(text, 0, console.width()));
}

// `search`: searches on a given cluster.
template <typename Estimate, typename Search>
void print_missing(const ModelQuestion& question, const planner::Ranking<Estimate>& ranking,
                   const Arguments& arguments, const Console& console, const Search& search) {
  const std::string text =
      fmt::format("nothing fits: {} comes nearest and needs {} more than the {} of the {}",
                  ranking.least_missing, format_bytes(ranking.least_missing_bytes),
                  format_bytes(question.cluster.usable_bytes()), question.cluster.device.name);
  fmt::print("{}", wrap(text, 0, console.width()));
  const std::string larger = larger_machine(
      question, arguments.text("on"),
      [&](const planner::Cluster& cluster) { return !search(cluster).best.empty(); });
  if (!larger.empty()) {
    fmt::print("it fits with --on {}\n", larger);
  }
}

void print_too_slow(const planner::Ranking<ServingEstimate>& ranking, double requests_per_s,
                    const Console& console) {
  const ServingEstimate& nearest = *ranking.nearest;
  if (requests_per_s > 0 && !nearest.waits) {
    fmt::print("{}", wrap(fmt::format("no layout answers {:.4g} requests a second: {} comes "
                                      "nearest, with at most {:.4g}",
                                      requests_per_s, text_of(nearest.layout),
                                      nearest.most_requests_per_s),
                          0, console.width()));
    return;
  }
  const std::string text = fmt::format(
      "no layout keeps the time limits: {} comes nearest, with {} to the first token and "
      "{} a token for {} at once",
      text_of(nearest.layout), time_text(nearest.first_token_s), time_text(nearest.token_s),
      times(static_cast<std::size_t>(nearest.concurrency), "request"));
  fmt::print("{}", wrap(text, 0, console.width()));
}

void print_memory(const MemoryParts& parts, double limit) {
  fmt::print("memory of the fullest rank: {} of {}  {}\n", format_bytes(parts.total()),
             format_bytes(limit), bar(parts.total() / limit, 20));
  for (const auto& part : planner::memory_parts()) {
    if (const double bytes = parts.*part.value; bytes > 0) {
      fmt::print("  {:<16} {:>9}  {}\n", part.name, format_bytes(bytes), bar(bytes / limit, 20));
    }
  }
}

template <typename Parts>
void print_time(std::span<const planner::NamedPart<Parts>> names, const Parts& parts) {
  for (const auto& part : names) {
    if (const double seconds = parts.*part.value; seconds > 0) {
      fmt::print("  {:<16} {:>9}  {} {:>5}\n", part.name, time_text(seconds),
                 bar(seconds / parts.total(), 20), percent(seconds / parts.total()));
    }
  }
}

// Explains why the first layout is the fastest, and lists the parts of its time.
template <typename Estimate>
void print_reasons(const planner::Ranking<Estimate>& ranking, const Console& console) {
  const Estimate& first = ranking.best.front();
  fmt::print("\nlargest part: {} of the time\n", binding(first));
  if (ranking.best.size() > 1) {
    const Estimate& second = ranking.best[1];
    fmt::print("{}", wrap(fmt::format("{} ranks above {}: {}", text_of(first.layout),
                                      text_of(second.layout), reason(first, second)),
                          0, console.width()));
  }
}

// Returns the relative half-width of the interval, on its wider side.
std::string margin(const TrainingEstimate& estimate) {
  return fmt::format("+-{:.0f}%", (estimate.high_s / estimate.step_s - 1) * 100);
}

// Names the data that is recomputed or offloaded.
std::string spared_text(const planner::Layout& layout) {
  std::string text(planner::to_string(layout.recompute));
  if (layout.offload != planner::Offload{}) {
    text += fmt::format(", offload {}", planner::to_string(layout.offload));
  }
  return text;
}

void print_rows(const std::vector<TrainingEstimate>& rows, double limit, const Console& console) {
  const bool is_simulated = rows.front().simulated_s > 0;
  std::vector<TextTable::Column> columns = {{.heading = "layout", .left = true},
                                            {.heading = "recompute", .left = true},
                                            {.heading = "ZeRO"},
                                            {.heading = "step"},
                                            {.heading = "90 %"}};
  if (is_simulated) {
    columns.push_back({.heading = "simulated"});
  }
  columns.insert(columns.end(), {{.heading = "tok/s"},
                                 {.heading = "MFU"},
                                 {.heading = "comm", .spare = 1},
                                 {.heading = "bubble", .spare = 2},
                                 {.heading = "", .spare = 3},
                                 {.heading = "memory", .left = true}});
  TextTable table(std::move(columns));
  for (const TrainingEstimate& estimate : rows) {
    std::vector<std::string> cells = {text_of(estimate.layout), spared_text(estimate.layout),
                                      fmt::to_string(estimate.layout.zero),
                                      time_text(estimate.step_s), margin(estimate)};
    if (is_simulated) {
      cells.push_back(estimate.simulated_s > 0 ? time_text(estimate.simulated_s) : "-");
    }
    cells.insert(
        cells.end(),
        {fmt::format("{:.0f}", estimate.tokens_per_s_device), percent(estimate.utilisation),
         percent(communication(estimate.parts) / estimate.step_s),
         percent(estimate.parts.bubble / estimate.step_s), bar(estimate.memory.total() / limit, 6),
         format_bytes(estimate.memory.total())});
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text(console));
}

void print_rows(const std::vector<ServingEstimate>& rows, double limit, const Console& console) {
  const bool is_random = rows.front().waits.has_value();
  std::vector<TextTable::Column> columns = {
      {.heading = "layout", .left = true}, {.heading = "at once"}, {.heading = "TTFT"}};
  if (is_random) {
    columns.push_back({.heading = "90 %"});
  }
  columns.push_back({.heading = "TPOT"});
  if (is_random) {
    columns.push_back({.heading = "90 %"});
  }
  columns.insert(
      columns.end(),
      {{.heading = "tok/s/dev"}, {.heading = "", .spare = 1}, {.heading = "memory", .left = true}});
  TextTable table(columns);
  for (const ServingEstimate& estimate : rows) {
    std::vector<std::string> cells = {text_of(estimate.layout),
                                      fmt::format("{:.0f}", estimate.concurrency),
                                      time_text(estimate.first_token_s)};
    if (is_random) {
      cells.push_back(time_text(estimate.waits->first_token_s.nine_of_ten));
    }
    cells.push_back(time_text(estimate.token_s));
    if (is_random) {
      cells.push_back(time_text(estimate.waits->token_s.nine_of_ten));
    }
    cells.insert(cells.end(),
                 {fmt::format("{:.1f}", estimate.tokens_per_s_device),
                  bar(estimate.memory.total() / limit, 8), format_bytes(estimate.memory.total())});
    table.add(std::move(cells));
    if (const planner::PromptPool& pool = estimate.prompts; pool.layout.instances > 0) {
      cells.assign(columns.size(), "");
      cells.front() = fmt::format("  prompts: {}", text_of(pool.layout));
      cells[cells.size() - 2] = bar(pool.memory.total() / limit, 8);
      cells.back() = format_bytes(pool.memory.total());
      table.add(std::move(cells));
    }
  }
  fmt::print("{}", table.text(console));
}

template <typename Estimate>
void print_flags(const Arguments& arguments, const Estimate& first) {
  if (arguments.has("flags")) {
    fmt::print("\n{}\n", launch_flags(arguments.text("flags"), first.layout));
  }
}

}  // namespace

namespace {

std::string goodput_text(const planner::Goodput& goodput, const TrainingEstimate& first) {
  return fmt::format(
      "goodput: {} of the time, {:.0f} tokens/s/dev; a failure every {}; a checkpoint of {} every "
      "{} takes {}",
      percent(goodput.share), goodput.share * first.tokens_per_s_device,
      time_text(goodput.failure_every_s), format_bytes(goodput.checkpoint_bytes),
      time_text(goodput.checkpoint_every_s), time_text(goodput.checkpoint_s));
}

}  // namespace

void print_training(const ModelQuestion& question, const planner::TrainingTask& task,
                    const planner::Ranking<TrainingEstimate>& ranking, const Arguments& arguments,
                    const Console& console) {
  print_head(question,
             fmt::format("training, batch {} x {} tokens, {}", task.batch, task.sequence,
                         planner::to_string(task.precision)),
             {evidence_text(question, task), constants_text(question)}, console);
  if (ranking.best.empty()) {
    if (ranking.least_missing.empty()) {
      fmt::print("no layout has the dimensions or the batch that are asked for\n");
    } else {
      print_missing(question, ranking, arguments, console, [&](const planner::Cluster& cluster) {
        return search_training(question.shape, task, cluster, {.most = 1});
      });
    }
    print_refused(ranking, console);
    return;
  }
  print_rows(ranking.best, question.cluster.device.memory_bytes, console);
  if (ranking.best.front().simulated_s > 0) {
    fmt::print(
        "simulated: played on the topology, where groups share links and no collective is hidden;\n"
        "step: the sum of the parts, where context, pipeline and data are partly hidden\n");
  }
  print_reasons(ranking, console);
  print_refused(ranking, console);
  if (const std::optional<planner::Goodput> goodput = read_goodput(arguments, question, task)) {
    fmt::print("{}", wrap(goodput_text(*goodput, ranking.best.front()), 0, console.width()));
  }
  fmt::print("\nthe first, part by part\n");
  print_explanation(question, task, ranking.best.front());
  print_flags(arguments, ranking.best.front());
}

std::string evidence_text(const ModelQuestion& question, const planner::TrainingTask& task) {
  const planner::Stack& stack = question.stack;
  const std::size_t alike = question.levels(task).alike();
  const std::string kind =
      fmt::format("{} on {}", question.shape.has_experts() ? "models with experts" : "dense models",
                  question.cluster.device.name);
  return fmt::format("calibrated with {}{}: {}", stack.name,
                     stack.year > 0 ? fmt::format(" ({})", planner::date_text(stack.year)) : "",
                     alike == 0 ? fmt::format("no measurement of this kind, {}; the level is that "
                                              "of other steps",
                                              kind)
                                : fmt::format("{} of {}", times(alike, "measured step"), kind));
}

void print_explanation(const ModelQuestion& question, const planner::TrainingTask& task,
                       const TrainingEstimate& estimate) {
  const std::string schedule = schedule_of(estimate.layout);
  const double count = microbatches(estimate.layout, task);
  fmt::print("step of {}: {}; nine of ten steps take {}\n", text_of(estimate.layout),
             time_text(estimate.step_s), interval(estimate));
  fmt::print("{}, {}\n",
             count == 1 ? std::string("1 microbatch") : fmt::format("{} microbatches", count),
             schedule == "none" ? std::string("no pipeline") : "schedule " + schedule);
  print_time(planner::step_parts(), estimate.parts);
  print_memory(estimate.memory, question.cluster.device.memory_bytes);
}

namespace {

std::string serving_evidence_text(const ModelQuestion& question) {
  const std::string& device = question.cluster.device.name;
  if (is_serving_measured(question.shape, device)) {
    return fmt::format(
        "nine of ten measured deployments of dense models: a token within {:.0f} %, the first "
        "within {:.0f} %",
        planner::kServingMargin * 100, planner::kFirstTokenMargin * 100);
  }
  return fmt::format("no measurement of this kind, {} served on {}: no interval is known",
                     question.shape.has_experts() ? "models with experts" : "dense models", device);
}

// Describes the requests that are served.
std::string serving_text(const ModelQuestion& question, const planner::ServingTask& task) {
  std::string text = fmt::format(
      "serving, {} tokens in, {} out, {}", task.input, task.output,
      task.stored ? stored_text(question, task) : std::string(planner::to_string(task.weights)));
  if (task.requests_per_s > 0) {
    text += fmt::format("; {:.4g} requests/s at random", task.requests_per_s);
  }
  if (task.prefix_hits > 0) {
    text += fmt::format("; {} of each prompt cached", percent(task.prefix_hits));
  }
  if (const planner::Speculation& speculation = task.speculation; speculation.drafted > 0) {
    text += fmt::format(
        "; {} drafted a step, each right with {:.2g} and for {:.2g} of a step: "
        "{:.3g} tokens a step",
        times(static_cast<std::size_t>(speculation.drafted), "token"), speculation.accepted,
        speculation.cost, speculation.tokens_per_step());
  }
  return text;
}

// Empty: neither the power nor the price of the device is known.
std::string costs_text(const planner::DeviceModel& device, const ServingEstimate& estimate) {
  std::string text;
  if (device.watts > 0) {
    text = fmt::format("at most {:.2g} kWh ({} W a device)",
                       estimate.per_million_tokens(device.watts / 1e3), device.watts);
  }
  if (device.price_per_hour > 0) {
    text += fmt::format("{}price {:.3g} ({} a device and hour)", text.empty() ? "" : "; ",
                        estimate.per_million_tokens(device.price_per_hour), device.price_per_hour);
  }
  return text;
}

// REQUIRES: the requests arrive at random, and the layout can answer all of them.
std::string waits_text(const ServingEstimate& estimate) {
  const planner::Waits& waits = *estimate.waits;
  return fmt::format(
      "99 of 100 requests: TTFT within {}, TPOT within {}; {:.3g} of {:.0f} answers under way in "
      "the mean; at most {:.4g} requests/s could be answered",
      time_text(waits.first_token_s.most), time_text(waits.token_s.most), waits.at_once,
      estimate.concurrency / estimate.layout.dp, estimate.most_requests_per_s);
}

}  // namespace

void print_serving(const ModelQuestion& question, const planner::ServingTask& task,
                   const planner::Ranking<ServingEstimate>& ranking, const Arguments& arguments,
                   const Console& console) {
  print_head(question, serving_text(question, task), {serving_evidence_text(question)}, console);
  if (ranking.best.empty()) {
    if (ranking.nearest) {
      print_too_slow(ranking, task.requests_per_s, console);
    } else if (ranking.least_missing.empty()) {
      fmt::print("no layout has the dimensions that are asked for\n");
    } else {
      print_missing(question, ranking, arguments, console, [&](const planner::Cluster& cluster) {
        return search_serving(question.shape, task, {}, cluster, {.most = 1});
      });
    }
    print_refused(ranking, console);
    return;
  }
  const double limit = question.cluster.device.memory_bytes;
  print_rows(ranking.best, limit, console);
  print_reasons(ranking, console);
  print_refused(ranking, console);
  const ServingEstimate& first = ranking.best.front();
  fmt::print("\n");
  if (first.waits) {
    fmt::print("{}", wrap(waits_text(first), 0, console.width()));
  }
  fmt::print("a token of {}: {}\n", text_of(first.layout), time_text(first.token_s));
  print_time(planner::token_parts(), first.parts);
  print_memory(first.memory, limit);
  if (const std::string costs = costs_text(question.cluster.device, first); !costs.empty()) {
    fmt::print("{}", wrap("a million tokens: " + costs, 0, console.width()));
  }
  print_flags(arguments, first);
}

}  // namespace unisono::cli
