// Reads the command line of `unisono plan-model`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "base/quantile.h"
#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/text_file.h"
#include "cli/wrap.h"
#include "models/models.h"
#include "plan/plan.h"
#include "planner/config_json.h"
#include "topo/topo.h"
#include "topology/presets.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kHelp = "unisono help plan-model";

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

constexpr const char* kConfig = "config.json";

[[noreturn]] void refuse_model(const std::filesystem::path& path, const std::string& what,
                               std::string_view help) {
  const std::filesystem::path config = path.parent_path() / kConfig;
  throw UsageError(fmt::format("{} is {}", path.string(), what),
                   "unisono reads the config.json of a model as Hugging Face publishes it",
                   config != path && std::filesystem::is_regular_file(config)
                       ? fmt::format("give {}", config.string())
                       : std::string(help));
}

}  // namespace

planner::ModelConfig read_model(const std::string& name, std::string_view help) {
  if (const std::optional<planner::ModelShape> known = planner::find_model(name)) {
    return {.shape = *known};
  }
  if (std::filesystem::is_directory(name)) {
    const std::filesystem::path config = (std::filesystem::path(name) / kConfig).lexically_normal();
    if (!std::filesystem::is_regular_file(config)) {
      throw UsageError(fmt::format("the folder {} has no config.json", name),
                       "a model's folder has one beside its weights; in the cache of Hugging Face "
                       "it is models--NAME/snapshots/COMMIT",
                       std::string(help));
    }
    return read_model(config.string(), help);
  }
  if (!std::filesystem::is_regular_file(name)) {
    const std::vector<std::string_view> names = planner::known_models();
    const std::string near = did_you_mean(name, names);
    throw UsageError(fmt::format("{} is neither a model known by name nor a config.json", name),
                     near.empty() ? "known are " + listed(names) : near, std::string(help));
  }
  if (const std::string binary = foreign_binary_file(name); !binary.empty()) {
    refuse_model(name, binary, help);
  }
  const std::string text = read_text_file(name);
  Parsed<planner::ModelConfig> parsed = planner::parse_config_json(
      text, std::filesystem::path(name).parent_path().filename().string());
  if (!parsed) {
    if (const std::string foreign = foreign_file(text); !foreign.empty()) {
      refuse_model(name, foreign, help);
    }
    if (!begins_as_json(text)) {
      refuse_model(name, "not a config.json, which is JSON", help);
    }
    throw UsageError(fmt::format("{}: {}", name, parsed.message),
                     parsed.position.empty() ? "" : "at " + parsed.position, std::string(help));
  }
  return std::move(*parsed.value);
}

planner::DeviceModel read_device(const Arguments& arguments, const Topology& topology,
                                 std::string_view help) {
  const std::string name =
      arguments.has("device") ? arguments.text("device") : planner::device_of_preset(topology.name);
  if (const std::optional<planner::DeviceModel> device = planner::find_device(name)) {
    return *device;
  }
  if (std::filesystem::is_regular_file(name)) {
    Parsed<planner::DeviceModel> parsed = planner::parse_device_json(read_text_file(name));
    if (!parsed) {
      throw UsageError(fmt::format("{}: {}", name, parsed.message), "at " + parsed.position,
                       "docs/formats/device.md describes the file");
    }
    return std::move(*parsed.value);
  }
  throw UsageError(name.empty()
                       ? fmt::format("{} does not say which devices it has, nor their memory",
                                     topology.name.empty() ? "the topology" : topology.name)
                       : fmt::format("there is no device {}", name),
                   "--device is one of " + listed(planner::known_devices()) +
                       ", or a file: {\"format\": \"unisono.device/1\", \"name\": \"x\", "
                       "\"bf16_tflops\": 989, \"memory_gb\": 80, \"memory_gb_per_s\": 3350, "
                       "\"multiprocessors\": 132}",
                   std::string(help));
}

namespace {

// Paths of config.json and device files in a table are relative to the table.
planner::TableReader table_reader(const std::string& path, const ModelQuestion& question) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  constexpr std::string_view kAsked = "the model asked for";
  return {.model = [=, &question](const std::string& name) -> std::optional<planner::ModelShape> {
            if (name == kAsked || name == question.shape.name) {
              return question.shape;
            }
            const std::filesystem::path file = folder / name;
            return std::filesystem::is_regular_file(file)
                       ? std::optional(read_model(file.string(), kHelp).shape)
                       : planner::find_model(name);
          },
          .device = [&question](const std::string& name) -> std::optional<planner::DeviceModel> {
            return name == question.cluster.device.name ? question.cluster.device
                                                        : planner::find_device(name);
          },
          .asked_model = std::string(kAsked),
          .asked_device = question.cluster.device.name};
}

// Refuses rows in which the device exceeds its data sheet.
void check_peaks(const std::string& path, const std::vector<planner::MeasuredStep>& steps) {
  for (const planner::MeasuredStep& step : steps) {
    const double peak = step.cluster.device.flops(step.task.precision) * step.layout.devices();
    const double least = model_flops(step.shape, step.task) / peak;
    if (step.step_s < least) {
      throw UsageError(
          fmt::format(
              "{}, line {}: a step of {} would be {:.0f} % MFU: {} x {} at their peak in {} "
              "need {}",
              path, step.line, time_text(step.step_s), least / step.step_s * 100,
              step.layout.devices(), step.device, planner::to_string(step.task.precision),
              time_text(least)),
          "check the row's unit, batch, precision and number of devices", std::string(kHelp));
    }
  }
}

// Refuses rows that the fit does not explain.
void check_residuals(const std::string& path, const std::vector<planner::MeasuredStep>& steps) {
  constexpr double kMostOff = 0.3;
  constexpr std::size_t kMostNamed = 5;
  const std::vector<double> predicted = planner::predict(steps);
  std::string rows;
  std::size_t count = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double off = predicted[i] / steps[i].step_s - 1;
    if (std::abs(off) > kMostOff && ++count <= kMostNamed) {
      rows += fmt::format("{}line {}: {} measured, {} fitted", rows.empty() ? "" : "; ",
                          steps[i].line, time_text(steps[i].step_s), time_text(predicted[i]));
    }
  }
  if (count > 0) {
    throw UsageError(fmt::format("{}: no constants explain {} of {} to {:.0f} %", path, count,
                                 times(steps.size(), "row"), kMostOff * 100),
                     rows, "correct these rows, or leave them out");
  }
}

void fit_to_measured(const Arguments& arguments, const std::string& path, ModelQuestion& question) {
  Parsed<planner::MeasuredTable> parsed =
      planner::parse_measured_steps(read_text_file(path), table_reader(path, question));
  if (!parsed) {
    throw UsageError(fmt::format("{}: {}", path, parsed.message), "at " + parsed.position,
                     std::string(kHelp));
  }
  planner::MeasuredTable& table = *parsed.value;
  planner::Constants& constants = question.cluster.device.constants;
  std::vector<planner::MeasuredStep> steps;
  for (planner::MeasuredStep& step : table.steps) {
    if (step.device == question.cluster.device.name) {
      step.stack = step.stack.empty() ? "measured" : step.stack;
      steps.push_back(step);
    }
  }
  if (steps.empty()) {
    throw UsageError(
        fmt::format("{} has no step of {} to fit constants to", path, question.cluster.device.name),
        table.left_out.empty() ? "" : table.left_out.front(), std::string(kHelp));
  }
  check_peaks(path, steps);
  const auto errors = [&steps] {
    const std::vector<double> predicted = planner::predict(steps);
    std::vector<double> off;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      off.push_back(std::abs(predicted[i] / steps[i].step_s - 1) * 100);
    }
    return off;
  };
  const std::vector<double> before = errors();
  constants = planner::fit_constants(steps, constants);
  constants.source = fmt::format("{} of {}", times(steps.size(), "step"), path);
  for (planner::MeasuredStep& step : steps) {
    step.cluster.device.constants = constants;
  }
  check_residuals(path, steps);
  const std::vector<double> after = errors();
  question.fitted.push_back(fmt::format(
      "fitted to {}: off by {:.1f} % in the median, {:.1f} % for nine of ten (before: {:.1f} %, "
      "{:.1f} %)",
      times(steps.size(), "step"), median(after), quantile(after, 0.9), median(before),
      quantile(before, 0.9)));
  if (const std::size_t others = table.steps.size() - steps.size(); others > 0) {
    question.fitted.push_back(fmt::format("{} of other devices left out", times(others, "step")));
  }
  if (!table.left_out.empty()) {
    question.fitted.push_back(fmt::format(
        "{} left out, the first: {}", times(table.left_out.size(), "row"), table.left_out.front()));
  }
  if (!table.unread.empty()) {
    std::string columns;
    for (const std::string& column : table.unread) {
      columns += (columns.empty() ? "" : ", ") + column;
    }
    question.fitted.push_back("columns not read: " + columns);
  }
  if (!arguments.has("stack")) {
    const planner::MeasuredStep& last = steps.back();
    question.stack = {.name = last.stack,
                      .source = path,
                      .year = last.year,
                      .materialised_attention = last.task.materialised_attention};
  }
  question.measured.emplace(std::move(steps));
}

planner::Stack read_stack(const Arguments& arguments, const ModelQuestion& question) {
  if (!arguments.has("stack")) {
    return planner::default_stack(question.cluster.device.name, question.shape.has_experts());
  }
  const std::string name = arguments.text("stack");
  if (const std::optional<planner::Stack> stack = planner::find_stack(name)) {
    return *stack;
  }
  std::vector<std::string> known;
  for (const planner::Stack& stack : planner::known_stacks()) {
    known.push_back(stack.name);
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw UsageError(fmt::format("there is no stack {}", name), "known are " + listed(names),
                   std::string(kHelp));
}

planner::Precision read_precision(const Arguments& arguments, std::string_view option,
                                  const planner::DeviceModel& device, bool is_stored) {
  const planner::Precision precision =
      planner::parse_precision(arguments.text(option)).value_or(planner::Precision::bf16);
  const bool has_none = (precision == planner::Precision::f8 && device.f8_flops == 0) ||
                        (precision == planner::Precision::f4 && device.f4_flops == 0);
  if (has_none && option == "precision") {
    throw UsageError(
        fmt::format("the {} does not multiply in {}", device.name, planner::to_string(precision)),
        is_stored ? "without --precision the weights are as the file stores them"
                  : "--precision bf16 is what every device has",
        std::string(kHelp));
  }
  return precision;
}

constexpr std::int64_t kMostTokens = 100'000'000;

// "5%" -> 0.05
double read_share(const Arguments& arguments, std::string_view option) {
  const std::string text = arguments.text(option);
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc{} || std::string_view(end) != "%" || !(percent >= 0 && percent < 100)) {
    throw UsageError(fmt::format("--{} {} is not a share such as 5%", option, text), {},
                     std::string(kHelp));
  }
  return percent / 100;
}

}  // namespace

ModelQuestion read_model_question(const Arguments& arguments) {
  if (arguments.operands().empty()) {
    throw UsageError("which model?",
                     "known are " + listed(planner::known_models()) + "; or a config.json",
                     "unisono plan-model llama3-70b --on dgx_h100:nodes=8 --train");
  }
  if (!arguments.has("on")) {
    throw UsageError("which machine? --on says", {},
                     "unisono plan-model llama3-70b --on dgx_h100:nodes=8 --train");
  }
  if (arguments.has("train") && arguments.has("serve")) {
    throw UsageError("--train and --serve are two questions", {}, "ask them one after the other");
  }
  if (!arguments.has("train") && !arguments.has("serve")) {
    throw UsageError("what for? give one of --train and --serve", {}, std::string(kHelp));
  }
  planner::ModelConfig model = read_model(arguments.operands().front(), kHelp);
  ModelQuestion question{.shape = std::move(model.shape), .account = std::move(model.account)};
  question.topology = load_topology(arguments.text("on"));
  const planner::DeviceModel device = read_device(arguments, question.topology, kHelp);
  if (arguments.has("devices")) {
    question.topology =
        planner::part_of(std::move(question.topology),
                         static_cast<int>(arguments.number("devices", 1, kMostTopologyRanks)));
  }
  question.cluster = planner::cluster_of(question.topology, device);
  question.cluster.headroom = read_share(arguments, "headroom");
  question.stack = read_stack(arguments, question);
  if (arguments.has("measured")) {
    fit_to_measured(arguments, arguments.text("measured"), question);
  }
  return question;
}

planner::Levels ModelQuestion::levels(const planner::TrainingTask& task) const {
  return planner::Levels(measured ? *measured : planner::built_in_evidence(), stack, shape, task,
                         cluster.device.name);
}

std::string larger_machine(const ModelQuestion& question, const std::string& on,
                           const std::function<bool(const planner::Cluster&)>& fits) {
  constexpr int kDoublings = 6;
  constexpr int kMostDevices = 4096;
  if (find_preset(on.substr(0, on.find(':'))) == nullptr) {
    return {};
  }
  const std::string& name = question.topology.name;
  const std::size_t word = std::max(name.find("nodes=") + 1, name.find("hosts=") + 1);
  if (word == 0) {
    return {};
  }
  const std::size_t first = name.find('=', word) + 1;
  const std::size_t end = std::min(name.find(',', first), name.size());
  int nodes = std::stoi(name.substr(first, end - first));
  for (int i = 0; i < kDoublings; ++i) {
    nodes *= 2;
    const std::string larger = name.substr(0, first) + std::to_string(nodes) + name.substr(end);
    const Parsed<Topology> topology = make_preset(larger);
    if (!topology || topology.value->rank_count() > kMostDevices) {
      return {};
    }
    if (fits(planner::cluster_of(*topology.value, question.cluster.device))) {
      return larger;
    }
  }
  return {};
}

planner::TrainingTask read_training_task(const Arguments& arguments,
                                         const ModelQuestion& question) {
  const auto state = [&](std::string_view option) {
    return arguments.text(option) == "f32" ? planner::State::f32 : planner::State::bf16;
  };
  return {.batch = static_cast<double>(arguments.number("batch", 1, 1'000'000'000)),
          .sequence = static_cast<double>(arguments.number("sequence", 1, kMostTokens)),
          .precision = read_precision(arguments, "precision", question.cluster.device, false),
          .materialised_attention = question.stack.materialised_attention,
          .gradients = state("gradients"),
          .moments = state("moments")};
}

std::optional<planner::Goodput> read_goodput(const Arguments& arguments,
                                             const ModelQuestion& question,
                                             const planner::TrainingTask& task) {
  if (!arguments.has("mtbf")) {
    return std::nullopt;
  }
  const planner::FailureRates rates{
      .device_mtbf_s = arguments.seconds("mtbf"),
      .storage_bytes_per_s = static_cast<double>(arguments.bytes("storage")),
      .restart_s = arguments.seconds("restart")};
  if (rates.device_mtbf_s <= 0 || rates.storage_bytes_per_s <= 0) {
    throw UsageError("--mtbf and --storage must be more than 0", {}, std::string(kHelp));
  }
  return goodput_of(question.shape, task, question.cluster.devices, rates);
}

namespace {

planner::Speculation read_speculation(const Arguments& arguments,
                                      const planner::ModelShape& shape) {
  if (!arguments.has("speculate")) {
    return {};
  }
  const std::string text = arguments.text("speculate");
  std::vector<double> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    double number = -1;
    const auto [last, error] = std::from_chars(text.data() + at, text.data() + end, number);
    numbers.push_back(error == std::errc{} && last == text.data() + end ? number : -1);
    at = end + 1;
  }
  const auto speculation = planner::speculation_of(numbers, shape);
  if (!speculation) {
    throw UsageError(
        fmt::format("--speculate {} must be the drafted tokens per step and the chance of each, "
                    "such as 3,0.8",
                    text),
        "a third number is the time of drafting a token, in steps of the model: 3,0.8,0.05",
        std::string(kHelp));
  }
  return *speculation;
}

}  // namespace

planner::ServingTask read_serving_task(const Arguments& arguments, ModelQuestion& question) {
  const planner::DeviceModel& device = question.cluster.device;
  const std::optional<planner::StoredWeights>& stored = question.shape.stored;
  planner::ServingTask task{
      .input = static_cast<double>(arguments.number("input", 1, kMostTokens)),
      .output = static_cast<double>(arguments.number("output", 1, kMostTokens)),
      .concurrency = static_cast<double>(arguments.number("concurrency", 0, 1'000'000)),
      .imbalance = arguments.real("imbalance"),
      .prefix_hits = read_share(arguments, "prefix-hits"),
      .speculation = read_speculation(arguments, question.shape)};
  if (const int most = std::max(1, question.shape.experts);
      !(task.imbalance >= 1 && task.imbalance <= most)) {
    throw UsageError(
        fmt::format("--imbalance {} is not a number from 1 to {}, the number of experts per layer",
                    arguments.text("imbalance"), most),
        {}, std::string(kHelp));
  }
  if (arguments.has("rate")) {
    constexpr double kMostRequests = 1e9;
    task.requests_per_s = arguments.real("rate");
    if (!(task.requests_per_s > 0 && task.requests_per_s <= kMostRequests)) {
      throw UsageError(fmt::format("--rate {} is not a number of requests a second above 0",
                                   arguments.text("rate")),
                       {}, std::string(kHelp));
    }
  }
  if (stored && !arguments.has("precision")) {
    take_stored(question.shape, device, task);
    return task;
  }
  if (stored) {
    question.account.left_out.push_back(
        fmt::format("quantization_config (--precision {} says another than {})",
                    arguments.text("precision"), stored->name));
  }
  task.weights = read_precision(arguments, "precision", device, stored.has_value());
  task.cache =
      task.weights == planner::Precision::bf16 ? planner::Precision::bf16 : planner::Precision::f8;
  return task;
}

void note_length(ModelQuestion& question, double tokens) {
  planner::ConfigAccount& account = question.account;
  if (!account.most_tokens_key.empty() && tokens > account.most_tokens) {
    account.left_out.push_back(
        fmt::format("{}={:.0f} (planned with {:.0f} tokens, which the model may not be made for)",
                    account.most_tokens_key, account.most_tokens, tokens));
  }
}

}  // namespace unisono::cli
