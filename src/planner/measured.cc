#include "planner/measured.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "base/words.h"
#include "planner/training.h"

namespace unisono::planner {
namespace {

// The name of each column, and its names in published tables.
constexpr std::array<std::array<std::string_view, 3>, 27> kColumns = {
    {{"stack", "release"},
     {"date"},
     {"model"},
     {"layers"},
     {"hidden"},
     {"heads"},
     {"device", "system"},
     {"gpus", "devices"},
     {"precision"},
     {"batch", "gbs", "global_batch"},
     {"mb", "mbs", "micro_batch"},
     {"sequence", "seq"},
     {"tp"},
     {"pp"},
     {"cp"},
     {"uly"},
     {"vp"},
     {"ep"},
     {"dp"},
     {"zero"},
     {"fsdp"},
     {"recompute"},
     {"metric"},
     {"measured"},
     {"phase"},
     {"note"},
     {"notes"}}};
constexpr std::array<std::string_view, 4> kMetrics = {"step_s", "step_ms", "tokens_s_gpu",
                                                      "tflops_gpu"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return result;
}

std::vector<std::string> cells_of(std::string_view line) {
  constexpr std::size_t kMostCells = 1000;
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      if (cells.size() > kMostCells) {
        break;  // no line has more columns
      }
      cells.emplace_back();
    } else if (letter != '\r') {
      cells.back() += letter;
    }
  }
  return cells;
}

std::string column_named(std::string_view given) {
  const std::string name = lower(given);
  for (const auto& names : kColumns) {
    if (!name.empty() && std::ranges::find(names, name) != names.end()) {
      return std::string(names.front());
    }
  }
  return std::ranges::find(kMetrics, name) != kMetrics.end() ? name : std::string();
}

// The reason why a whole table is refused.
struct Fault {
  std::string what;
};

class Row {
 public:
  void set(const std::string& column, std::string cell) { cells_[column] = std::move(cell); }

  // Returns the cell; empty if the table lacks the column, or if it does not apply.
  std::string text(std::string_view column) const {
    const auto found = cells_.find(column);
    return found == cells_.end() || lower(found->second) == "n/a" ? std::string() : found->second;
  }

  std::string needed(std::string_view column, std::string_view what) const {
    const std::string cell = text(column);
    if (cell.empty()) {
      const char* why = cells_.contains(column) ? " is empty" : " is missing";
      throw Fault{"the column " + in_quotes(column) + why + ": " + std::string(what)};
    }
    return cell;
  }

  double number(std::string_view column, const std::string& cell) const {
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    // "30624 (29521)" has two figures; the first one counts.
    const bool ends = end == cell.data() + cell.size() || *end == ' ';
    if (error != std::errc{} || !ends || !std::isfinite(value) || value <= 0) {
      throw Fault{"the column " + in_quotes(column) + " is " + in_quotes(cell) +
                  ", not a number above 0"};
    }
    return value;
  }
  double number(std::string_view column, std::string_view what = "a number above 0") const {
    return number(column, needed(column, what));
  }
  int whole(std::string_view column, int fallback) const {
    const std::string cell = text(column);
    constexpr double kMost = 1e6;
    const double value = cell.empty() ? fallback : number(column, cell);
    if (value > kMost || value != std::floor(value)) {
      throw Fault{"the column " + in_quotes(column) + " is " + cell + ", not a whole number"};
    }
    return static_cast<int>(value);
  }

 private:
  std::map<std::string, std::string, std::less<>> cells_;
};

Precision precision_of(const Row& row) {
  constexpr std::string_view kSay = "say bf16, f8 or f4";
  const std::string cell = row.needed("precision", kSay);
  const std::string name = lower(cell);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("fp4") || name == "f4") {
    return Precision::f4;
  }
  if (has("fp8") || name == "f8") {
    return Precision::f8;
  }
  if (has("bf16") || has("fp16") || name == "f16") {
    return Precision::bf16;
  }
  throw Fault{"the column " + in_quotes("precision") + " is " + in_quotes(cell) + ": " +
              std::string(kSay)};
}

// Converts "2026-04" to 2026.25.
double year_of(const Row& row) {
  const std::string cell = row.text("date");
  if (cell.empty()) {
    return 0;
  }
  const std::size_t dash = std::min(cell.find('-'), cell.size());
  const double year = row.number("date", cell.substr(0, dash));
  const double month = dash < cell.size() ? row.number("date", cell.substr(dash + 1)) : 1;
  if (month > 12) {
    throw Fault{"the column " + in_quotes("date") + " is " + in_quotes(cell) +
                ": say year and month, 2026-04"};
  }
  return year + (month - 1) / 12;
}

ModelShape gpt_of(const Row& row) {
  constexpr double kWidth = 4;
  ModelShape shape{.name = "gpt",
                   .layers = row.whole("layers", 0),
                   .hidden = row.number("hidden"),
                   .heads = row.whole("heads", 0),
                   .gated = false,
                   .vocabulary = 51200,
                   .tied = true};
  if (shape.layers < 1 || shape.heads < 1) {
    throw Fault{"a gpt needs the columns hidden, heads and layers"};
  }
  shape.kv_heads = shape.heads;
  shape.head_dim = shape.hidden / shape.heads;
  shape.ffn = kWidth * shape.hidden;
  return shape;
}

// Reads the rows that the planner can describe. For any other row, returns the reason.
class RowReader {
 public:
  RowReader(const Row& row, const TableReader& reader, bool is_materialised)
      : row_(row), reader_(reader), is_materialised_(is_materialised) {}

  std::string read(MeasuredStep& step) const {
    if (const std::string phase = lower(row_.text("phase"));
        !phase.empty() && phase.find("pre-training") == std::string::npos) {
      return "not of pre-training";
    }
    if (const std::string problem = read_model(step); !problem.empty()) {
      return problem;
    }
    const std::string named = row_.text("device").empty() && !reader_.asked_device.empty()
                                  ? reader_.asked_device
                                  : row_.needed("device", "say which, such as h100");
    std::optional<DeviceModel> device = reader_.device(lower(named));
    if (!device) {
      device = reader_.device(device_of_preset(lower(named)));
    }
    if (!device) {
      return "the device " + named + " is not known";
    }
    step.device = device->name;
    step.stack = row_.text("stack");
    step.year = year_of(row_);
    read_layout(step);
    step.task = {.batch = row_.number("batch"),
                 .sequence = row_.number("sequence"),
                 .precision = precision_of(row_),
                 .materialised_attention = is_materialised_};
    step.cluster = cluster_of(*device, step.layout.devices());
    read_time(step);
    if (!problem_of(step.shape, step.layout, step.task).empty()) {
      step.layout.vp = 1;  // stages of unequal size, which the model cannot describe
    }
    return problem_of(step.shape, step.layout, step.task);
  }

 private:
  std::string read_model(MeasuredStep& step) const {
    step.model = row_.text("model").empty() && !reader_.asked_model.empty()
                     ? reader_.asked_model
                     : row_.needed("model", "give a name, or the path of a config.json");
    if (lower(step.model).starts_with("gpt") && !row_.text("hidden").empty()) {
      step.shape = gpt_of(row_);
      return {};
    }
    const std::optional<ModelShape> shape = reader_.model(step.model);
    if (!shape) {
      return "the model " + step.model + " is not known";
    }
    step.shape = *shape;
    step.shape.layers = row_.whole("layers", shape->layers);
    return {};
  }

  void read_layout(MeasuredStep& step) const {
    Layout& layout = step.layout;
    layout = {.tp = row_.whole("tp", 1),
              .pp = row_.whole("pp", 1),
              .vp = row_.whole("vp", 1),
              .cp = row_.whole("cp", 1),
              .uly = row_.whole("uly", 1),
              .ep = row_.whole("ep", 1),
              .micro_batch = row_.whole("mb", 1),
              .sequence_parallel = !is_materialised_};
    if (const std::string dp = row_.text("dp"); !dp.empty()) {
      layout.dp = row_.whole("dp", 1);
    } else {
      const int devices = row_.whole("gpus", 0);
      if (devices == 0 || devices % layout.devices() != 0) {
        throw Fault{devices == 0 ? "the column " + in_quotes("gpus") + " is empty: say how many"
                                 : std::to_string(devices) + " gpus are no multiple of the " +
                                       std::to_string(layout.devices()) + " of the layout"};
      }
      layout.dp = devices / layout.devices();
    }
    const std::string zero = row_.text("zero");
    const std::string fsdp = row_.text("fsdp");  // number of ranks that it shards over
    layout.zero = zero == "0"                   ? 0
                  : !zero.empty()               ? std::min(3, row_.whole("zero", 1))
                  : fsdp.empty() || fsdp == "0" ? 1
                                                : 3;
    const std::string recompute = lower(row_.text("recompute"));
    if (recompute != "full" && recompute != "selective" && recompute != "none" &&
        !recompute.empty()) {
      throw Fault{"the column " + in_quotes("recompute") + " is " + in_quotes(recompute) +
                  ": say none, selective or full"};
    }
    layout.recompute = recompute == "full"        ? Recompute::full
                       : recompute == "selective" ? Recompute::selective
                                                  : Recompute::none;
  }

  void read_time(MeasuredStep& step) const {
    std::string metric = row_.text("metric");
    std::string column = "measured";
    if (metric.empty()) {
      for (const std::string_view name : kMetrics) {
        if (!row_.text(name).empty()) {
          metric = column = name;
          break;
        }
      }
    }
    if (std::ranges::find(kMetrics, metric) == kMetrics.end()) {
      throw Fault{metric.empty()
                      ? "no time: the columns step_s, step_ms, tokens_s_gpu and "
                        "tflops_gpu are empty"
                      : "the column " + in_quotes("metric") + " is " + in_quotes(metric) +
                            ": say step_s, step_ms, tokens_s_gpu "
                            "or tflops_gpu"};
    }
    const double value = row_.number(column);
    const double tokens = step.task.batch * step.task.sequence;
    const double devices = step.layout.devices();
    step.step_s = metric == "step_s"    ? value
                  : metric == "step_ms" ? value / 1e3
                  : metric == "tokens_s_gpu"
                      ? tokens / value / devices
                      : model_flops(step.shape, step.task) / (value * 1e12) / devices;
  }

  const Row& row_;
  const TableReader& reader_;
  bool is_materialised_;
};

// Returns a robust distance, in which a far outlier counts little more than a near miss.
double misfit(const std::vector<MeasuredStep>& steps, const Constants& constants) {
  double sum = 0;
  for (MeasuredStep step : steps) {
    step.cluster.device.constants = constants;
    const double predicted =
        estimate_training(step.shape, step.layout, step.task, step.cluster).step_s;
    const double error = std::abs(std::log(predicted / step.step_s));
    sum += std::sqrt(error * error + 1e-4);
  }
  // Keeps constants that the measurements do not determine near the constants of an unmeasured
  // device.
  constexpr double Constants::* kFitted[] = {&Constants::compute, &Constants::memory,
                                             &Constants::network};
  const Constants unmeasured;
  for (double Constants::* constant : kFitted) {
    sum += 0.2 * std::abs(std::log(constants.*constant / unmeasured.*constant));
  }
  return sum;
}

// Constants that change together.
using Direction = std::vector<double Constants::*>;

// Moves along one direction or two at once; halves the step if no move helps.
Constants descend(const std::vector<MeasuredStep>& steps, Constants start,
                  const std::vector<Direction>& free) {
  const auto moved = [](Constants constants, const Direction& direction, double by) {
    for (double Constants::* constant : direction) {
      constants.*constant = std::clamp(constants.*constant * by, 1.0, 10.0);
    }
    return constants;
  };
  double least = misfit(steps, start);
  for (double step = 0.3; step > 0.002;) {
    Constants best = start;
    const double before = least;
    for (const Direction& first : free) {
      for (const Direction& second : free) {
        for (const double by : {1 + step, 1 / (1 + step)}) {
          for (const double other : {1.0, 1 + step, 1 / (1 + step)}) {
            if (first == second && other != 1) {
              continue;
            }
            const Constants tried = moved(moved(start, first, by), second, other);
            if (const double sum = misfit(steps, tried); sum < least) {
              least = sum;
              best = tried;
            }
          }
        }
      }
    }
    start = best;
    if (least == before) {
      step /= 2;
    }
  }
  return start;
}

}  // namespace

Parsed<MeasuredTable> parse_measured_steps(std::string_view text, const TableReader& reader) {
  MeasuredTable table;
  std::vector<std::string> columns;
  bool is_materialised = false;
  std::size_t number = 0;
  const auto fault = [&](const std::string& what) {
    return Parsed<MeasuredTable>::failure(what, "line " + std::to_string(number));
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.starts_with('#')) {
      if (line.starts_with("# source: ")) {
        table.source = line.substr(line.find(':') + 2);
      }
      is_materialised = is_materialised || line == "# attention: materialised";
      continue;
    }
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 1 && cells.front().empty()) {
      continue;
    }
    if (columns.empty()) {
      for (const std::string& cell : cells) {
        columns.push_back(column_named(cell));
        if (columns.back().empty()) {
          table.unread.push_back(cell);
        } else if (std::ranges::count(columns, columns.back()) > 1) {
          return fault("the column " + in_quotes(columns.back()) + " comes twice");
        }
      }
      continue;
    }
    if (cells.size() != columns.size()) {
      return fault(std::to_string(cells.size()) + " cells under a header of " +
                   std::to_string(columns.size()));
    }
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      row.set(columns[i], cells[i]);
    }
    MeasuredStep step{.line = number};
    try {
      if (const std::string problem = RowReader(row, reader, is_materialised).read(step);
          problem.empty()) {
        table.steps.push_back(step);
      } else {
        table.left_out.push_back("line " + std::to_string(number) + ": " + problem);
      }
    } catch (const Fault& refused) {
      return fault(refused.what);
    }
  }
  return Parsed<MeasuredTable>::success(std::move(table));
}

std::vector<double> predict(const std::vector<MeasuredStep>& steps) {
  std::vector<double> predicted;
  for (const MeasuredStep& step : steps) {
    predicted.push_back(estimate_training(step.shape, step.layout, step.task, step.cluster).step_s);
  }
  return predicted;
}

Constants fit_constants(const std::vector<MeasuredStep>& steps, Constants start) {
  constexpr std::size_t kForTwo = 3;
  constexpr std::size_t kForThree = 6;
  std::vector<MeasuredStep> dense;
  std::vector<MeasuredStep> with_experts;
  for (const MeasuredStep& step : steps) {
    (step.shape.has_experts() ? with_experts : dense).push_back(step);
  }
  const Direction compute = {&Constants::compute};
  const Direction memory = {&Constants::memory};
  const Direction network = {&Constants::network};
  const Direction all = {&Constants::compute, &Constants::memory, &Constants::network};
  if (!dense.empty()) {
    std::vector<Direction> free = {compute, memory};
    if (dense.size() < kForTwo) {
      free = {all};
    } else if (dense.size() >= kForThree) {
      free.push_back(network);
    }
    start = descend(dense, start, free);
  }
  if (!with_experts.empty()) {
    start = descend(with_experts, start, {{&Constants::experts}});
  }
  return start;
}

}  // namespace unisono::planner
