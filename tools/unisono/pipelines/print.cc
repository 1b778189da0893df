// The output of `unisono pipeline`, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/failure.h"
#include "cli/text_table.h"
#include "pipeline/catalog.h"
#include "pipeline/run.h"
#include "pipeline/verify.h"
#include "pipelines/pipelines.h"

namespace unisono::cli {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string heading(const pipeline::Pipeline& pipeline, const Console& console) {
  return fmt::format("{}  p={} stages={} m={}", console.paint(Paint::strong, pipeline.name),
                     pipeline.ranks, pipeline.stages(), pipeline.microbatches);
}

Json finding_json(const pipeline::Finding& finding) {
  Json waits = Json::array();
  for (const pipeline::Finding::Wait& wait : finding.waits) {
    waits.push_back({{"rank", wait.rank},
                     {"action", to_string(wait.action)},
                     {"peer", wait.peer},
                     {"head", wait.has_head ? to_string(wait.head) : ""}});
  }
  return {{"kind", to_string(finding.kind)},
          {"rank", finding.rank},
          {"index", finding.index},
          {"action", finding.action.stage < 0 ? "" : to_string(finding.action)},
          {"other_rank", finding.other_rank},
          {"other", finding.other.stage < 0 ? "" : to_string(finding.other)},
          {"waits", waits},
          {"text", sentence(finding)}};
}

// Rounds the difference, because two engines add the same times in different orders.
double rounded_difference(double a, double b) {
  constexpr double kRounding = 1e-9;
  return std::abs(a - b) <= kRounding * std::max(a, b) ? 0 : a - b;
}

// "2=1.5"
void set_slow(const Arguments& arguments, int stages, pipeline::RunOptions& options) {
  if (!arguments.has("slow")) {
    return;
  }
  const std::string text = arguments.text("slow");
  std::size_t end = 0;
  try {
    options.slow_stage = std::stoi(text, &end);
    if (end < text.size() && text[end] == '=') {
      std::size_t behind = 0;
      options.slow_factor = std::stod(text.substr(end + 1), &behind);
      end += 1 + behind;
    }
  } catch (const std::exception&) {
    end = 0;
  }
  constexpr double kMostFactor = 1e6;
  if (end != text.size() || text.find('=') == std::string::npos || options.slow_stage < 0 ||
      options.slow_stage >= stages || !(options.slow_factor >= 0) ||
      options.slow_factor > kMostFactor) {
    throw UsageError("--slow needs a stage and a factor, such as 2=1.5",
                     fmt::format("the stages are 0 to {}", stages - 1));
  }
}

}  // namespace

int list_pipelines(const Console& console) {
  Json rows = Json::array();
  TextTable table({{.heading = "schedule", .left = true},
                   {.heading = "what it does", .left = true},
                   {.heading = "source", .left = true}});
  for (const pipeline::Entry* entry : pipeline::catalog()) {
    if (console.json()) {
      rows.push_back({{"name", entry->name},
                      {"chunks", entry->chunks},
                      {"summary", entry->summary},
                      {"source", entry->source}});
    } else {
      table.add({std::string(entry->name), std::string(entry->summary), std::string(entry->source)},
                Paint::dim);
    }
  }
  if (!console.json()) {
    fmt::print("{}", table.text(console));
  } else {
    print({{"schema", "unisono.pipelines/1"}, {"pipelines", rows}});
  }
  return kDone;
}

int verify_pipeline(const pipeline::Pipeline& pipeline, bool has_more_actions,
                    const Console& console) {
  const pipeline::Verdict verdict = verify(pipeline);
  if (console.json()) {
    Json findings = Json::array();
    for (const pipeline::Finding& finding : verdict.findings) {
      findings.push_back(finding_json(finding));
    }
    print({{"schema", "unisono.pipeline_verify/1"},
           {"name", pipeline.name},
           {"right", verdict.right()},
           {"lanes", pipeline.lanes},
           {"capacity", pipeline.capacity},
           {"least_capacity", verdict.least_capacity},
           {"peak_activations", verdict.peak_activations},
           {"memory_unit", memory_unit(pipeline)},
           {"peak_memory", verdict.peak_bytes},
           {"findings", findings}});
    return verdict.right() ? kDone : kAnswerIsNo;
  }
  fmt::print(
      "{}: {}\n", heading(pipeline, console),
      verdict.right() ? console.paint(Paint::good, "right") : console.paint(Paint::bad, "wrong"));
  constexpr std::size_t kShown = 20;
  for (std::size_t i = 0; i < std::min(kShown, verdict.findings.size()); ++i) {
    fmt::print("  {}\n", sentence(verdict.findings[i]));
  }
  if (verdict.findings.size() > kShown) {
    fmt::print("  ... and more; --json has up to 100\n");
  }
  if (has_more_actions && !verdict.right()) {
    fmt::print("  actions include the sends and receives derived from the file\n");
  }
  if (verdict.least_capacity >= 0) {
    fmt::print("  lanes hold {} message{}; the least that works is {}\n", pipeline.capacity,
               pipeline.capacity == 1 ? "" : "s", verdict.least_capacity);
  }
  const auto most =
      *std::max_element(verdict.peak_activations.begin(), verdict.peak_activations.end());
  fmt::print("  a rank holds at most {} microbatch{} of a stage: {}\n", most, most == 1 ? "" : "es",
             fmt::join(verdict.peak_activations, " "));
  return verdict.right() ? kDone : kAnswerIsNo;
}

int simulate_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                      const Console& console) {
  pipeline::RunOptions options{
      .seed = static_cast<std::uint64_t>(arguments.number("seed", 0, std::int64_t{1} << 62)),
      .jitter = arguments.real("jitter")};
  if (!(options.jitter >= 0 && options.jitter <= 1)) {
    throw UsageError("--jitter must be a share from 0 to 1");
  }
  set_slow(arguments, pipeline.stages(), options);
  const pipeline::Verdict verdict = verify(pipeline);
  if (!verdict.right()) {
    throw UsageError(fmt::format("{} is invalid", pipeline.name), {}, "unisono pipeline verify");
  }
  const pipeline::Run alone = pipeline::run(pipeline, options);
  const pipeline::Run run =
      arguments.has("on") ? on_shared_links(pipeline, alone, arguments) : alone;
  const double work = *std::max_element(run.busy.begin(), run.busy.end());
  const double bubble = run.makespan - work;
  const double share = run.makespan > 0 ? bubble / run.makespan : 0;
  if (console.json()) {
    print({{"schema", "unisono.pipeline_sim/1"},
           {"name", pipeline.name},
           {"time_unit", time_unit_json(arguments)},
           {"makespan", run.makespan},
           {"makespan_unshared", alone.makespan},
           {"bubble", bubble},
           {"bubble_share", share},
           {"busy", run.busy},
           {"microbatches", pipeline.microbatches},
           {"stages", pipeline.stage_rank},
           {"transfer", pipeline.costs.transfer},
           {"lanes", pipeline.lanes},
           {"capacity", pipeline.capacity},
           {"peak_activations", verdict.peak_activations},
           {"memory_unit", memory_unit(pipeline)},
           {"peak_memory", verdict.peak_bytes},
           {"ranks", spans_json(pipeline, run)}});
    return kDone;
  }
  const auto time = [&](double value) { return pipeline_time(value, arguments); };
  fmt::print("{}\n  takes {}, {} of it computing on the busiest rank; bubble {} ({:.1f} %)\n",
             heading(pipeline, console), time(run.makespan), time(work), time(bubble), 100 * share);
  if (arguments.has("on")) {
    fmt::print("  messages that share links or lanes add {}\n",
               time(rounded_difference(run.makespan, alone.makespan)));
  }
  return kDone;
}

}  // namespace unisono::cli
