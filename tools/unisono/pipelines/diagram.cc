// The bubble diagram: time from left to right, a row for each rank. If the rows are too short for
// the numbers of the microbatches, they continue below, like lines of music.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cli/failure.h"
#include "cli/language.h"
#include "pipeline/json.h"
#include "pipeline/run.h"
#include "pipeline/text.h"
#include "pipeline/verify.h"
#include "pipelines/pipelines.h"

namespace unisono::cli {
namespace {

constexpr std::size_t kMostColumns = 80;
constexpr std::size_t kLabel = 6;

struct Cell {
  char sign = '.';
  Paint paint = Paint::dim;
};

Paint paint_of(pipeline::ActionKind kind) {
  switch (kind) {
    case pipeline::ActionKind::forward:
      return Paint::accent;
    case pipeline::ActionKind::backward:
    case pipeline::ActionKind::backward_input:
      return Paint::good;
    default:
      return Paint::warn;
  }
}

std::string row_of(std::span<const Cell> cells, const Console& console) {
  std::string text;
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t end = i;
    std::string same;
    for (; end < cells.size() && cells[end].paint == cells[i].paint; ++end) {
      same += cells[end].sign;
    }
    text += console.paint(cells[i].paint, same);
    i = end;
  }
  return text;
}

std::string label_of(const pipeline::Action& action) {
  return std::string(to_string(action.kind)) + std::to_string(action.microbatch);
}

struct Scale {
  double columns_a_time = 0;
  std::size_t line = 0;  // columns after which the rows continue below
  bool has_numbers = true;
};

Scale scale_of(const pipeline::Pipeline& pipeline, const pipeline::Run& run) {
  constexpr std::size_t kColumns = kMostColumns - kLabel;
  constexpr double kMostLines = 8;
  double shortest = run.makespan;
  double needed = 0;  // columns per unit of time, so that each label fits
  for (std::size_t rank = 0; rank < run.spans.size(); ++rank) {
    for (std::size_t i = 0; i < run.spans[rank].size(); ++i) {
      const double length = run.spans[rank][i].end - run.spans[rank][i].start;
      if (is_compute(pipeline.actions[rank][i].kind) && length > 0) {
        const auto label = static_cast<double>(label_of(pipeline.actions[rank][i]).size());
        shortest = std::min(shortest, length);
        needed = std::max(needed, label / length);
      }
    }
  }
  const double whole = run.makespan > 0 ? kColumns / run.makespan : 0;
  if (needed <= whole) {
    return {.columns_a_time = whole, .line = kColumns};
  }
  // Uses whole columns for the shortest computation, so that no computation is cut at the end of a
  // line if the others are multiples of it.
  const double cell = std::ceil(needed * shortest);
  if (cell / shortest * run.makespan > kColumns * kMostLines) {
    return {.columns_a_time = whole, .line = kColumns, .has_numbers = false};
  }
  const auto of_cell = static_cast<std::size_t>(cell);
  return {.columns_a_time = cell / shortest, .line = kColumns / of_cell * of_cell};
}

// Draws a computation: its letter, its microbatch if there is room, and dashes.
void draw(const pipeline::Action& action, std::size_t first, std::size_t end,
          std::vector<Cell>& cells) {
  const std::string label = label_of(action);
  for (std::size_t column = first; column < end; ++column) {
    const std::size_t i = column - first;
    const bool has_room = end - first >= label.size();
    const char sign = i == 0 ? label[0] : has_room && i < label.size() ? label[i] : '-';
    cells[column] = {.sign = sign, .paint = paint_of(action.kind)};
  }
}

// Names the letters of this diagram, in a line of at most 80 columns.
Text legend_of(const pipeline::Pipeline& pipeline) {
  const auto has = [&](pipeline::ActionKind kind) {
    return std::ranges::any_of(pipeline.actions, [&](const auto& row) {
      return std::ranges::any_of(row, [&](const auto& action) { return action.kind == kind; });
    });
  };
  Text text = {"F0 forward, microbatch 0", "F0 前向，微批 0"};
  if (has(pipeline::ActionKind::backward)) {
    text = say("{}; B backward", "{}；B 反向", text);
  }
  if (has(pipeline::ActionKind::backward_input) || has(pipeline::ActionKind::backward_weight)) {
    text = say("{}; I input, W weight gradient", "{}；I 输入梯度，W 权重梯度", text);
  }
  return say("{}; . waits", "{}；. 等待", text);
}

}  // namespace

nlohmann::ordered_json spans_json(const pipeline::Pipeline& pipeline, const pipeline::Run& run) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < run.spans.size(); ++rank) {
    nlohmann::ordered_json actions = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < run.spans[rank].size(); ++i) {
      const pipeline::Span& span = run.spans[rank][i];
      actions.push_back({{"action", to_string(pipeline.actions[rank][i])},
                         {"start", span.start},
                         {"end", span.end}});
    }
    ranks.push_back(std::move(actions));
  }
  return ranks;
}

int show_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                  const Console& console) {
  const std::string format = arguments.text("format");
  if (format == "csv" && pipeline.chains.size() > 1) {
    throw UsageError(
        fmt::format("the CSV format cannot express that {} has two chains", pipeline.name), {},
        "--format pipeline");
  }
  if (format != "text") {
    fmt::print("{}", format == "csv" ? to_csv(pipeline) : to_json(pipeline));
    return kDone;
  }
  if (!verify(pipeline).right()) {
    throw UsageError(fmt::format("{} is invalid", pipeline.name), {}, "unisono pipeline verify");
  }
  const pipeline::Run run = pipeline::run(pipeline);
  if (console.json()) {
    const nlohmann::ordered_json json = {{"schema", "unisono.pipeline_show/1"},
                                         {"name", pipeline.name},
                                         {"time_unit", time_unit_json(arguments)},
                                         {"makespan", run.makespan},
                                         {"ranks", spans_json(pipeline, run)}};
    fmt::print("{}\n", json.dump(2));
    return kDone;
  }
  const Scale scale = scale_of(pipeline, run);
  const auto column = [&](double time) {
    return static_cast<std::size_t>(time * scale.columns_a_time + 1e-6);
  };
  const std::size_t columns = std::max<std::size_t>(column(run.makespan), 1);
  const double work = *std::max_element(run.busy.begin(), run.busy.end());
  const double share = run.makespan > 0 ? 100 * (1 - work / run.makespan) : 0;
  const Text unit = are_microseconds(arguments) ? Text{} : Text{" units", " 个时间单位"};
  fmt::print("{}\n", spoken(say("{}  takes {}{}, bubble {:.1f} % on the busiest rank",
                                "{}  用时 {}{}，最忙的 rank 上气泡占 {:.1f} %",
                                console.paint(Paint::strong, pipeline.name),
                                pipeline_time(run.makespan, arguments), unit, share)));
  std::vector<std::vector<Cell>> rows(run.spans.size(), std::vector<Cell>(columns));
  for (std::size_t rank = 0; rank < run.spans.size(); ++rank) {
    for (std::size_t i = 0; i < run.spans[rank].size(); ++i) {
      const pipeline::Span& span = run.spans[rank][i];
      if (is_compute(pipeline.actions[rank][i].kind)) {
        draw(pipeline.actions[rank][i], column(span.start), column(span.end), rows[rank]);
      }
    }
  }
  for (std::size_t first = 0; first < columns; first += scale.line) {
    fmt::print("{}", first > 0 ? "\n" : "");
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      const std::span<const Cell> line(rows[rank]);
      fmt::print("{:>4}  {}\n", rank,
                 row_of(line.subspan(first, std::min(scale.line, columns - first)), console));
    }
  }
  if (!console.quiet()) {
    fmt::print("{}\n", console.paint(Paint::dim, spoken(legend_of(pipeline))));
  }
  if (!scale.has_numbers) {
    fmt::print(
        "{}\n",
        console.paint(
            Paint::dim,
            spoken({"too fine for text: --format pipeline writes a file that unisono view draws",
                    "文字画不了这么细：--format pipeline 写出文件，由 unisono view 画出"})));
  }
  return kDone;
}

}  // namespace unisono::cli
