#include "planner/measured.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "base/quantile.h"
#include "base/words.h"

namespace unisono::planner {
namespace {

using Row = std::map<std::string, std::string, std::less<>>;

std::vector<std::string> cells_of(std::string_view line) {
  constexpr std::size_t kMostCells = 1000;
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      if (cells.size() > kMostCells) {
        break;  // no line has so many columns
      }
      cells.emplace_back();
    } else if (letter != '\r') {
      cells.back() += letter;
    }
  }
  return cells;
}

std::optional<double> number_in(const Row& row, std::string_view key) {
  const auto found = row.find(key);
  if (found == row.end()) {
    return std::nullopt;
  }
  double value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // "30624 (29521)" gives two figures; the first is meant.
  const bool ends = end == text.data() + text.size() || *end == ' ';
  return error == std::errc{} && ends && std::isfinite(value) && value > 0 ? std::optional(value)
                                                                           : std::nullopt;
}

int whole_in(const Row& row, std::string_view key, int fallback) {
  const double value = number_in(row, key).value_or(fallback);
  return value < 1e6 ? static_cast<int>(value) : fallback;
}

std::string text_in(const Row& row, std::string_view key) {
  const auto found = row.find(key);
  return found == row.end() ? std::string() : found->second;
}

// Bandwidths that collectives reach, a device and way: of the presets.
Cluster cluster_of_system(const DeviceModel& device, int devices) {
  constexpr double kGiga = 1e9;
  struct Network {
    std::string_view device;
    int domain;
    double near;
    double far;
  };
  static constexpr Network kNetworks[] = {
      {"a100", 8, 200 * kGiga, 25 * kGiga},   {"h100", 8, 328 * kGiga, 50 * kGiga},
      {"h200", 8, 328 * kGiga, 50 * kGiga},   {"b200", 8, 592 * kGiga, 50 * kGiga},
      {"b300", 8, 592 * kGiga, 100 * kGiga},  {"gb200", 72, 592 * kGiga, 50 * kGiga},
      {"gb300", 72, 592 * kGiga, 100 * kGiga}};
  Cluster cluster{.name = device.name, .device = device, .devices = devices};
  for (const Network& network : kNetworks) {
    if (network.device == device.name) {
      cluster.domain = network.domain;
      cluster.near_bytes_per_s = network.near;
      cluster.far_bytes_per_s = network.far;
    }
  }
  return cluster;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return result;
}

std::optional<ModelShape> shape_named(std::string_view text) {
  static const std::vector<std::pair<std::string_view, std::string_view>> kNames = {
      {"llama3_8b", "llama3-8b"},
      {"llama3_70b", "llama3-70b"},
      {"llama3.1_405b", "llama3-405b"},
      {"deepseekv3", "deepseek-v3"},
      {"kimi_k2", "kimi-k2"},
      {"gpt oss 120b", "gpt-oss-120b"},
      {"qwen3_30b_a3b", "qwen3-30b-a3b"},
      {"qwen3_235b_a22b", "qwen3-235b-a22b"}};
  const std::string name = lower(text);
  for (const auto& [given, known] : kNames) {
    if (name.starts_with(given)) {
      return find_model(known);
    }
  }
  return find_model(name);
}

Precision precision_named(std::string_view text) {
  const std::string name = lower(text);
  if (name.find("fp4") != std::string::npos) {
    return Precision::f4;
  }
  return name.find("fp8") != std::string::npos ? Precision::f8 : Precision::bf16;
}

Layout layout_in(const Row& row, std::string_view micro_batch) {
  return {.tp = whole_in(row, "tp", 1),
          .pp = whole_in(row, "pp", 1),
          .vp = whole_in(row, "vp", 1),
          .cp = whole_in(row, "cp", 1),
          .uly = whole_in(row, "uly", 1),
          .ep = whole_in(row, "ep", 1),
          .micro_batch = whole_in(row, micro_batch, 1)};
}

std::string read_gpt(const Row& row, MeasuredStep& step) {
  ModelShape& shape = step.shape;
  shape.name = step.model;
  shape.layers = whole_in(row, "layers", 0);
  shape.hidden = number_in(row, "hidden").value_or(0);
  shape.heads = shape.kv_heads = whole_in(row, "heads", 0);
  if (shape.layers == 0 || shape.heads == 0 || shape.hidden == 0) {
    return "sizes of the model are missing";
  }
  shape.head_dim = shape.hidden / shape.heads;
  shape.ffn = 4 * shape.hidden;
  shape.gated = false;
  shape.vocabulary = 51200;
  shape.tied = true;
  step.device = "a100";
  step.layout = layout_in(row, "micro_batch");
  step.layout.dp = whole_in(row, "dp", 1);
  step.layout.zero = 0;
  step.layout.sequence_parallel = false;
  step.layout.recompute = Recompute::full;
  step.task = {.batch = number_in(row, "global_batch").value_or(0),
               .sequence = number_in(row, "sequence").value_or(0),
               .materialised_attention = true};
  step.step_s = number_in(row, "step_ms").value_or(0) / 1e3;
  return {};
}

std::string read_throughput(const Row& row, MeasuredStep& step) {
  if (text_in(row, "phase") != "Pre-Training Performance") {
    return "not of pre-training";
  }
  const std::optional<ModelShape> shape = shape_named(step.model);
  if (!shape) {
    return "the model is not known";
  }
  step.shape = *shape;
  step.device = device_of_preset(lower(text_in(row, "system")));
  step.release = text_in(row, "release");
  step.layout = layout_in(row, "mbs");
  const int gpus = whole_in(row, "gpus", 1);
  step.layout.dp = std::max(1, gpus / step.layout.devices());
  step.layout.zero = number_in(row, "fsdp") ? 3 : 1;
  step.task = {.batch = number_in(row, "gbs").value_or(0),
               .sequence = number_in(row, "seq").value_or(0),
               .precision = precision_named(text_in(row, "precision"))};
  const double rate = number_in(row, "tokens_s_gpu").value_or(0);
  if (rate == 0) {
    return "no throughput";
  }
  step.step_s = step.task.batch * step.task.sequence / rate / gpus;
  return {};
}

std::string finish(MeasuredStep& step) {
  const std::optional<DeviceModel> device = find_device(step.device);
  if (!device) {
    return "the device is not known";
  }
  if (step.step_s <= 0 || step.task.batch <= 0 || step.task.sequence <= 0) {
    return "time, batch or sequence is missing";
  }
  step.cluster = cluster_of_system(*device, step.layout.devices());
  if (!problem_of(step.shape, step.layout, step.task).empty()) {
    step.layout.vp = 1;  // stages of unequal size: the model has no word for them
  }
  return problem_of(step.shape, step.layout, step.task);
}

// How far off, so that one row that is far off counts little more than one that is less so.
double misfit(const std::vector<MeasuredStep>& steps, const Constants& constants) {
  double sum = 0;
  for (MeasuredStep step : steps) {
    step.cluster.device.constants = constants;
    const double predicted =
        estimate_training(step.shape, step.layout, step.task, step.cluster).step_s;
    const double error = std::abs(std::log(predicted / step.step_s));
    sum += std::sqrt(error * error + 1e-4);
  }
  // Without measurements that tell them apart, constants stay near those of a device without any.
  constexpr double Constants::* kFitted[] = {&Constants::compute, &Constants::memory,
                                             &Constants::network};
  const Constants unmeasured;
  for (double Constants::* constant : kFitted) {
    sum += 0.2 * std::abs(std::log(constants.*constant / unmeasured.*constant));
  }
  return sum;
}

// Steps along one constant at a time and along two at once, which shrink when none helps.
Constants descend(const std::vector<MeasuredStep>& steps, Constants start,
                  const std::vector<double Constants::*>& free) {
  double least = misfit(steps, start);
  for (double step = 0.3; step > 0.002;) {
    Constants best = start;
    const auto attempt = [&](double Constants::* first, double by, double Constants::* second,
                             double other) {
      Constants tried = start;
      tried.*first = std::clamp(tried.*first * by, 0.5, 10.0);
      tried.*second = std::clamp(tried.*second * other, 0.5, 10.0);
      if (const double sum = misfit(steps, tried); sum < least) {
        least = sum;
        best = tried;
      }
    };
    const double before = least;
    for (double Constants::* first : free) {
      for (double Constants::* second : free) {
        for (const double by : {1 + step, 1 / (1 + step)}) {
          for (const double other : {1.0, 1 + step, 1 / (1 + step)}) {
            if (second != first || other == 1) {
              attempt(first, by, second, other);
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

Parsed<MeasuredTables> parse_measured_steps(std::string_view text) {
  MeasuredTables tables;
  std::vector<std::string> header;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> cells = cells_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells.size() == 1 && cells.front().empty()) {
      continue;
    }
    if (cells.size() != header.size()) {
      return Parsed<MeasuredTables>::failure(std::to_string(cells.size()) +
                                                 " cells under a header of " +
                                                 std::to_string(header.size()),
                                             "line " + std::to_string(number));
    }
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      row[header[i]] = cells[i];
    }
    const bool is_gpt = row.contains("step_ms");
    if (!is_gpt && !row.contains("tokens_s_gpu")) {
      return Parsed<MeasuredTables>::failure(
          "no column " + in_quotes("step_ms") + " or " + in_quotes("tokens_s_gpu"), "line 1");
    }
    MeasuredStep step{.model = text_in(row, "model")};
    std::string problem = is_gpt ? read_gpt(row, step) : read_throughput(row, step);
    if (problem.empty()) {
      problem = finish(step);
    }
    if (problem.empty()) {
      tables.steps.push_back(step);
    } else {
      tables.left_out.push_back("line " + std::to_string(number) + ", " + step.model + ": " +
                                problem);
    }
  }
  return Parsed<MeasuredTables>::success(std::move(tables));
}

Residuals residuals_of(const std::vector<MeasuredStep>& steps,
                       const std::vector<double>& predicted_s) {
  Residuals residuals;
  if (steps.empty()) {
    return residuals;
  }
  std::vector<double> errors;
  double concordant = 0;
  double pairs = 0;
  const auto rate = [&](std::size_t i, double seconds) {
    return steps[i].task.batch * steps[i].task.sequence / seconds / steps[i].cluster.devices;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    errors.push_back(std::abs(predicted_s[i] / steps[i].step_s - 1));
    for (std::size_t j = 0; j < i; ++j) {
      const double measured = rate(i, steps[i].step_s) - rate(j, steps[j].step_s);
      const double predicted = rate(i, predicted_s[i]) - rate(j, predicted_s[j]);
      if (measured != 0) {
        pairs += 1;
        concordant += measured * predicted > 0 ? 1 : -1;
      }
    }
  }
  residuals.median = median(errors);
  residuals.p90 = quantile(errors, 0.9);
  residuals.order = pairs > 0 ? concordant / pairs : 1;
  return residuals;
}

std::vector<double> predict(const std::vector<MeasuredStep>& steps) {
  std::vector<double> predicted;
  for (const MeasuredStep& step : steps) {
    predicted.push_back(estimate_training(step.shape, step.layout, step.task, step.cluster).step_s);
  }
  return predicted;
}

Constants fit_constants(const std::vector<MeasuredStep>& steps, Constants start,
                        bool with_network) {
  std::vector<MeasuredStep> dense;
  std::vector<MeasuredStep> with_experts;
  for (const MeasuredStep& step : steps) {
    (step.shape.has_experts() ? with_experts : dense).push_back(step);
  }
  std::vector<double Constants::*> free = {&Constants::compute, &Constants::memory};
  if (with_network) {
    free.push_back(&Constants::network);
  }
  if (!dense.empty()) {
    start = descend(dense, start, free);
  }
  if (!with_experts.empty()) {
    start = descend(with_experts, start, {&Constants::experts});
  }
  return start;
}

}  // namespace unisono::planner
