#include "planner/stacks.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "planner/parts.h"
#include "planner/stack_tables.h"
#include "planner/training.h"

namespace unisono::planner {
namespace {

// Standard deviations of the common parts of residuals, in the logarithm and for dense models, and
// the distances over which these parts vary. Each value is the most likely one for the built-in
// steps, with a prior of 0.1.
constexpr double kAll = 0.10;
constexpr double kStack = 0.10;
constexpr double kDevice = 0.08;
constexpr double kPrecision = 0.02;  // per stack, device and precision
constexpr double kLayout = 0.086;    // per stack
constexpr double kModel = 0.055;     // per stack and layout
constexpr double kNoise = 0.031;
constexpr double kExperts = 2.8;  // factor for models with experts
constexpr double kReach = 1.24;   // between layouts, in octaves of their sizes
constexpr double kYears = 0.34;   // between releases

constexpr double kNineOfTen = 1.645;  // standard deviations on both sides

double square(double value) {
  return value * value;
}

bool has_experts(const StepPlace& place) {
  return place.model.back() > 0;
}

std::array<double, 4> sizes_of(const ModelShape& shape) {
  return {static_cast<double>(shape.layers), shape.hidden, shape.ffn,
          static_cast<double>(shape.experts)};
}

std::array<double, 9> sizes_of(const Layout& layout, double sequence) {
  constexpr double kStep = 2;  // between methods: as far as sizes that differ by a factor of four
  return {std::log2(layout.tp),
          std::log2(layout.pp),
          std::log2(layout.cp * layout.uly),
          std::log2(layout.ep),
          std::log2(layout.micro_batch),
          std::log2(sequence),
          std::log2(layout.devices()),
          layout.zero == 3 ? kStep : 0,
          layout.recompute == Recompute::full ? kStep / 2 : 0};
}

double nearness(const std::array<double, 9>& a, const std::array<double, 9>& b) {
  double distance = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance += square(a[i] - b[i]);
  }
  return std::exp(-distance / square(kReach));
}

struct Shared {
  double any = 0;
  double equal = 0;
};

Shared shared(const StepPlace& a, const StepPlace& b) {
  if (has_experts(a) != has_experts(b)) {
    return {};
  }
  const bool is_family = a.family == b.family;
  const bool is_device = a.device == b.device;
  Shared shared{.any = square(kAll)};
  shared.any += is_device ? square(kDevice) : 0;
  if (is_family) {
    shared.any += square(kStack);
    shared.any += is_device && a.precision == b.precision ? square(kPrecision) : 0;
    shared.equal = square(kLayout);
    if (a.model == b.model) {
      shared.equal += square(kModel) * std::exp(-std::abs(a.year - b.year) / kYears);
    }
  }
  const double scale = has_experts(a) ? square(kExperts) : 1;
  return {.any = shared.any * scale, .equal = shared.equal * scale};
}

double own_variance(const StepPlace& place) {
  const Shared same = shared(place, place);
  return same.any + same.equal + square(kNoise) * (has_experts(place) ? square(kExperts) : 1);
}

std::string family_of(std::string_view stack) {
  const std::size_t dash = stack.rfind('-');
  const bool has_release = dash != std::string_view::npos && dash + 1 < stack.size() &&
                           stack[dash + 1] >= '0' && stack[dash + 1] <= '9';
  return std::string(has_release ? stack.substr(0, dash) : stack);
}

StepPlace place_of(const MeasuredStep& step) {
  return {.family = family_of(step.stack),
          .device = step.device,
          .year = step.year,
          .precision = step.task.precision,
          .model = sizes_of(step.shape),
          .layout = sizes_of(step.layout, step.task.sequence)};
}

struct BuiltIn {
  std::vector<MeasuredStep> steps;
  std::vector<Stack> stacks;
};

BuiltIn read_built_in() {
  BuiltIn result;
  for (const std::string_view text : stack_tables()) {
    Parsed<MeasuredTable> table = parse_measured_steps(text);
    if (!table || !table.value->left_out.empty()) {
      throw std::logic_error(table ? table.value->left_out.front()
                                   : table.position + ": " + table.message);
    }
    for (MeasuredStep& step : table.value->steps) {
      if (std::ranges::find(result.stacks, step.stack, &Stack::name) == result.stacks.end()) {
        result.stacks.push_back({.name = step.stack,
                                 .source = table.value->source,
                                 .year = step.year,
                                 .materialised_attention = step.task.materialised_attention});
      }
      result.steps.push_back(std::move(step));
    }
  }
  result.stacks.push_back({.name = "torchtitan",
                           .source = "no measured step; FSDP, as llm-foundry",
                           .year = 2024.75,
                           .like = "llm-foundry"});
  std::ranges::stable_sort(result.stacks, std::ranges::greater{}, &Stack::year);
  return result;
}

const BuiltIn& built_in() {
  static const BuiltIn kBuiltIn = read_built_in();
  return kBuiltIn;
}

}  // namespace

std::string Stack::family() const {
  return family_of(name);
}

std::string date_text(double year) {
  const int months = static_cast<int>(std::lround(year * 12));
  const int month = months % 12 + 1;
  return std::to_string(months / 12) + (month < 10 ? "-0" : "-") + std::to_string(month);
}

double Level::low() const {
  return times * std::exp(-kNineOfTen * deviation);
}

double Level::high() const {
  return times * std::exp(kNineOfTen * deviation);
}

Evidence::Evidence(std::vector<MeasuredStep> steps) : steps_(std::move(steps)) {
  const std::vector<double> predicted = predict(steps_);
  std::vector<double> residuals;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    places_.push_back(place_of(steps_[i]));
    residuals.push_back(std::log(steps_[i].step_s / predicted[i]));
  }
  std::vector<double> covariance;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    for (std::size_t j = 0; j < places_.size(); ++j) {
      const Shared common = shared(places_[i], places_[j]);
      covariance.push_back(
          i == j ? own_variance(places_[i])
                 : common.any + common.equal * nearness(places_[i].layout, places_[j].layout));
    }
  }
  kriging_ = Kriging(std::move(covariance), std::move(residuals));
}

std::vector<Level> Evidence::left_out() const {
  std::vector<Level> levels;
  for (const Kriging::Answer& answer : kriging_.left_out()) {
    levels.push_back({.times = std::exp(answer.mean), .deviation = answer.deviation});
  }
  return levels;
}

const Evidence& built_in_evidence() {
  static const Evidence kEvidence(built_in().steps);
  return kEvidence;
}

const std::vector<Stack>& known_stacks() {
  return built_in().stacks;
}

std::optional<Stack> find_stack(std::string_view name) {
  for (const Stack& stack : known_stacks()) {
    if (stack.name == name || stack.family() == name) {
      return stack;
    }
  }
  return std::nullopt;
}

Stack default_stack(std::string_view device, bool has_experts) {
  const MeasuredStep* best = nullptr;
  const auto is_here = [&](const MeasuredStep& step) { return step.device == device; };
  for (const MeasuredStep& step : built_in().steps) {
    if (step.shape.has_experts() == has_experts &&
        (best == nullptr ||
         std::pair(is_here(step), step.year) > std::pair(is_here(*best), best->year))) {
      best = &step;
    }
  }
  return find_stack(best->stack).value_or(Stack{});
}

Levels::Levels(const Evidence& evidence, const Stack& stack, const ModelShape& shape,
               const TrainingTask& task, std::string device)
    : evidence_(evidence), sequence_(task.sequence) {
  place_ = {.family = stack.like.empty() ? stack.family() : stack.like,
            .device = std::move(device),
            .year = stack.year,
            .precision = task.precision,
            .model = sizes_of(shape)};
  for (const StepPlace& known : evidence_.places_) {
    const Shared common = shared(place_, known);
    common_.push_back({.any = common.any, .equal = common.equal});
    if (stack.like.empty() && has_experts(known) == has_experts(place_) &&
        known.family == place_.family && known.device == place_.device) {
      ++alike_;
    }
  }
  unknown_ = stack.like.empty() ? 0 : square(kStack * (has_experts(place_) ? kExperts : 1));
}

std::vector<double> Levels::with(const Layout& layout) const {
  const std::array<double, 9> sizes = sizes_of(layout, sequence_);
  std::vector<double> with(common_.size());
  for (std::size_t i = 0; i < with.size(); ++i) {
    with[i] = common_[i].any;
    if (common_[i].equal > 0) {
      with[i] += common_[i].equal * nearness(sizes, evidence_.places_[i].layout);
    }
  }
  return with;
}

double Levels::times(const Layout& layout) const {
  return std::exp(evidence_.kriging_.mean(with(layout)));
}

Level Levels::at(const Layout& layout) const {
  const Kriging::Answer answer =
      evidence_.kriging_.at(with(layout), own_variance(place_) + unknown_);
  return {.times = std::exp(answer.mean), .deviation = answer.deviation};
}

const MeasuredStep* Levels::nearest(const Layout& layout) const {
  const std::array<double, 9> sizes = sizes_of(layout, sequence_);
  const MeasuredStep* best = nullptr;
  double most = 0;
  for (std::size_t i = 0; i < common_.size(); ++i) {
    const StepPlace& known = evidence_.places_[i];
    if (known.family == place_.family && known.device == place_.device) {
      const double near = common_[i].equal * nearness(sizes, known.layout);
      if (near > most) {
        most = near;
        best = &evidence_.steps_[i];
      }
    }
  }
  return best;
}

TrainingEstimate scaled(TrainingEstimate estimate, double times) {
  for (const NamedPart<StepParts>& part : step_parts()) {
    estimate.parts.*part.value *= times;
  }
  estimate.step_s *= times;
  estimate.tokens_per_s_device /= times;
  estimate.flops_per_s_device /= times;
  estimate.utilisation /= times;
  return estimate;
}

TrainingEstimate at_level(const TrainingEstimate& estimate, const Levels& levels) {
  const Level level = levels.at(estimate.layout);
  TrainingEstimate result = scaled(estimate, level.times);
  result.low_s = estimate.step_s * level.low();
  result.high_s = estimate.step_s * level.high();
  return result;
}

Cluster at_level(Cluster cluster, double times) {
  Constants& constants = cluster.device.constants;
  for (double Constants::* constant :
       {&Constants::compute, &Constants::memory, &Constants::network}) {
    constants.*constant *= times;
  }
  return cluster;
}

}  // namespace unisono::planner
