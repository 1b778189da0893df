#include "planner/stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/quantile.h"
#include "planner/search.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono::planner {
namespace {

// Steps to be judged, with their predictions from other steps.
struct Judged {
  std::vector<MeasuredStep> steps;
  std::vector<double> errors;
  double inside = 0;  // share of steps inside their intervals
  double width = 0;   // median half-width of an interval
};

using Kept = bool (*)(const MeasuredStep&);

bool is_dense(const MeasuredStep& step) {
  return !step.shape.has_experts();
}
bool is_dense_throughput(const MeasuredStep& step) {
  return is_dense(step) && step.stack.starts_with("megatron-bridge");
}
bool has_experts(const MeasuredStep& step) {
  return step.shape.has_experts();
}
bool is_of_a100(const MeasuredStep& step) {
  return step.stack.starts_with("megatron-deepspeed");
}

Judged left_out(Kept kept) {
  const Evidence& evidence = built_in_evidence();
  const std::vector<Level> levels = evidence.left_out();
  const std::vector<double> formula = predict(evidence.steps());
  Judged judged;
  std::vector<double> widths;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const MeasuredStep& step = evidence.steps()[i];
    if (!kept(step)) {
      continue;
    }
    const double times = step.step_s / formula[i];
    judged.steps.push_back(step);
    judged.errors.push_back(std::abs(levels[i].times / times - 1));
    judged.inside += times >= levels[i].low() && times <= levels[i].high() ? 1 : 0;
    widths.push_back((levels[i].high() - levels[i].low()) / 2 / levels[i].times);
  }
  judged.inside /= static_cast<double>(judged.steps.size());
  judged.width = median(widths);
  return judged;
}

// Returns the model's FLOP/s over the device's peak.
double utilisation(const MeasuredStep& step, double seconds) {
  return model_flops(step.shape, step.task) / step.layout.devices() / seconds /
         step.cluster.device.flops(step.task.precision);
}

// Returns the errors of a planner that uses one MFU per device and precision, from the other steps.
std::vector<double> errors_of_one_mfu(const std::vector<MeasuredStep>& steps) {
  std::vector<double> errors;
  for (const MeasuredStep& step : steps) {
    std::vector<double> others;
    std::vector<double> all;
    for (const MeasuredStep& other : steps) {
      if (&other != &step) {
        all.push_back(utilisation(other, other.step_s));
        if (other.device == step.device && other.task.precision == step.task.precision) {
          others.push_back(all.back());
        }
      }
    }
    const double expected = median(others.empty() ? all : others);
    errors.push_back(std::abs(utilisation(step, step.step_s) / expected - 1));
  }
  return errors;
}

// Returns the errors of a planner that uses the MFU of the nearest other step on the same device,
// in octaves of the layout and the model.
std::vector<double> errors_of_nearest(const std::vector<MeasuredStep>& steps) {
  const auto sizes = [](const MeasuredStep& step) {
    const Layout& layout = step.layout;
    return std::array{std::log2(layout.tp),
                      std::log2(layout.pp),
                      std::log2(layout.cp),
                      std::log2(layout.ep),
                      std::log2(layout.micro_batch),
                      std::log2(layout.devices()),
                      std::log2(step.task.sequence),
                      std::log2(active_weights(step.shape)),
                      3.0 * (layout.zero == 3 ? 1 : 0),
                      3.0 * static_cast<double>(step.task.precision)};
  };
  std::vector<double> errors;
  for (const MeasuredStep& step : steps) {
    double least = std::numeric_limits<double>::infinity();
    double expected = 0.4;
    for (const MeasuredStep& other : steps) {
      const auto a = sizes(step);
      const auto b = sizes(other);
      double distance = other.device == step.device ? 0 : 100;
      for (std::size_t i = 0; i < a.size(); ++i) {
        distance += (a[i] - b[i]) * (a[i] - b[i]);
      }
      if (&other != &step && distance < least) {
        least = distance;
        expected = utilisation(other, other.step_s);
      }
    }
    errors.push_back(std::abs(utilisation(step, step.step_s) / expected - 1));
  }
  return errors;
}

struct Bounds {
  const char* name;
  Kept kept;
  std::size_t rows;
  double median;
  double p90;
};

TEST(Stacks, StepsThatWereLeftOutAreAsMeasured) {
  constexpr Bounds kBounds[] = {{"dense", is_dense, 105, 0.055, 0.145},
                                {"throughputs", is_dense_throughput, 20, 0.065, 0.13},
                                {"experts", has_experts, 40, 0.13, 0.45},
                                {"a100", is_of_a100, 37, 0.035, 0.145}};
  for (const auto& [name, kept, rows, most_median, most_p90] : kBounds) {
    const Judged judged = left_out(kept);
    EXPECT_GE(judged.steps.size(), rows) << name;
    EXPECT_LT(median(judged.errors), most_median) << name;
    EXPECT_LT(quantile(judged.errors, 0.9), most_p90) << name;
    RecordProperty(std::string(name) + "_median", std::to_string(median(judged.errors)));
    RecordProperty(std::string(name) + "_p90", std::to_string(quantile(judged.errors, 0.9)));
  }
}

// Tests the formula alone, with one set of constants, so that the levels cannot hide its errors.
// Kendall's tau measures the order of steps: nearly all pairs of A100 steps are in the measured
// order.
TEST(Stacks, TheFormulaAloneIsNear) {
  constexpr Bounds kBounds[] = {{"throughputs", is_dense_throughput, 20, 0.08, 0.21},
                                {"experts", has_experts, 40, 0.28, 0.78},
                                {"a100", is_of_a100, 37, 0.055, 0.13}};
  for (const auto& [name, kept, rows, most_median, most_p90] : kBounds) {
    std::vector<double> errors;
    for (const MeasuredStep& step : built_in_evidence().steps()) {
      if (kept(step)) {
        errors.push_back(std::abs(predict({step}).front() / step.step_s - 1));
      }
    }
    EXPECT_LT(median(errors), most_median) << name;
    EXPECT_LT(quantile(errors, 0.9), most_p90) << name;
  }
  std::vector<std::pair<double, double>> rates;  // measured and predicted
  for (const MeasuredStep& step : built_in_evidence().steps()) {
    if (is_of_a100(step)) {
      const double tokens = step.task.batch * step.task.sequence / step.layout.devices();
      rates.emplace_back(tokens / step.step_s, tokens / predict({step}).front());
    }
  }
  double order = 0;
  double pairs = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double measured = rates[i].first - rates[j].first;
      order += measured * (rates[i].second - rates[j].second) > 0 ? 1 : -1;
      pairs += 1;
    }
  }
  EXPECT_GT(order / pairs, 0.85);
}

// The planner must be better than these two simple ones.
TEST(Stacks, BetterThanOneMfuAndThanTheNearestRow) {
  for (const Kept kept : {is_dense, is_dense_throughput, has_experts}) {
    const Judged judged = left_out(kept);
    const double ours = median(judged.errors);
    EXPECT_LT(ours, 0.8 * median(errors_of_one_mfu(judged.steps)));
    EXPECT_LT(ours, 0.95 * median(errors_of_nearest(judged.steps)));
    const double ours_p90 = quantile(judged.errors, 0.9);
    EXPECT_LT(ours_p90, 0.9 * quantile(errors_of_one_mfu(judged.steps), 0.9));
    EXPECT_LT(ours_p90, 0.95 * quantile(errors_of_nearest(judged.steps), 0.9));
  }
}

TEST(Stacks, NineOfTenStepsAreWithinTheirIntervals) {
  for (const Kept kept : {is_dense, has_experts}) {
    const Judged judged = left_out(kept);
    EXPECT_GE(judged.inside, 0.85);
    EXPECT_LE(judged.inside, 0.95);
    EXPECT_LE(judged.width, 4.5 * median(judged.errors));
  }
}

TEST(Stacks, AreNamedAndDated) {
  ASSERT_GE(known_stacks().size(), 10U);
  double before = 3000;
  for (const Stack& stack : known_stacks()) {
    EXPECT_FALSE(stack.source.empty()) << stack.name;
    EXPECT_LE(stack.year, before) << stack.name;
    EXPECT_GT(stack.year, 2020) << stack.name;
    EXPECT_EQ(find_stack(stack.name)->name, stack.name);
    before = stack.year;
  }
  EXPECT_EQ(find_stack("megatron-bridge")->family(), "megatron-bridge");
  EXPECT_FALSE(find_stack("megatron"));
  EXPECT_EQ(date_text(2026 + 3.0 / 12), "2026-04");
}

TEST(Stacks, TheDefaultIsTheNewestOfTheDeviceAndKind) {
  EXPECT_EQ(default_stack("h100", false).name, "megatron-bridge-26.04.01");
  EXPECT_EQ(default_stack("a100", false).family(), "llm-foundry");
  // No stack was measured on this device: the newest one measured with a model of this kind.
  EXPECT_EQ(default_stack("mi300x", true).family(), "megatron-bridge");
}

ModelShape known_model(std::string_view name) {
  return find_model(name).value_or(ModelShape{});
}

TEST(Levels, AreWiderWhereNothingWasMeasured) {
  const ModelShape llama = known_model("llama3-70b");
  const TrainingTask task{.batch = 256, .sequence = 8192, .precision = Precision::f8};
  const Layout layout{.tp = 4, .pp = 8, .vp = 5, .dp = 2};
  const Stack stack = *find_stack("megatron-bridge");
  const Levels here(built_in_evidence(), stack, llama, task, "h100");
  const Levels elsewhere(built_in_evidence(), stack, llama, task, "mi300x");
  const Levels unknown(built_in_evidence(), {.name = "mine-1"}, llama, task, "mi300x");
  EXPECT_GT(here.alike(), 0U);
  EXPECT_EQ(elsewhere.alike(), 0U);
  EXPECT_EQ(elsewhere.nearest(layout), nullptr);
  ASSERT_NE(here.nearest(layout), nullptr);
  EXPECT_EQ(here.nearest(layout)->model, "llama3-70b");
  EXPECT_LT(here.at(layout).deviation, elsewhere.at(layout).deviation);
  EXPECT_LT(elsewhere.at(layout).deviation, unknown.at(layout).deviation);
  EXPECT_NEAR(here.times(layout), here.at(layout).times, 1e-12);
}

// Uses the level of another program that shards in the same way, with a larger deviation.
TEST(Levels, OfAStackWithoutSteps) {
  const ModelShape llama = known_model("llama3-8b");
  const TrainingTask task{.batch = 64, .sequence = 8192};
  const Layout layout{.dp = 8, .zero = 3};
  const Levels foundry(built_in_evidence(), *find_stack("llm-foundry"), llama, task, "h100");
  const Levels titan(built_in_evidence(), *find_stack("torchtitan"), llama, task, "h100");
  EXPECT_GT(foundry.alike(), 0U);
  EXPECT_EQ(titan.alike(), 0U);
  EXPECT_NEAR(titan.times(layout), foundry.times(layout), 0.05);
  EXPECT_GT(titan.at(layout).deviation, foundry.at(layout).deviation);
}

// With a measurement of the same step, the level is nearly the measured one.
TEST(Levels, FollowTheNearestStep) {
  const Evidence& evidence = built_in_evidence();
  const std::vector<double> formula = predict(evidence.steps());
  std::vector<double> off;
  for (std::size_t i = 0; i < formula.size(); ++i) {
    const MeasuredStep& step = evidence.steps()[i];
    const Levels levels(evidence, {.name = step.stack, .year = step.year}, step.shape, step.task,
                        step.device);
    off.push_back(std::abs(levels.times(step.layout) * formula[i] / step.step_s - 1));
  }
  EXPECT_LT(median(off), 0.03);
}

TEST(Levels, AllPartsOfAnEstimateShareTheLevel) {
  const ModelShape llama = known_model("llama3-8b");
  const TrainingTask task{.batch = 64, .sequence = 4096};
  const Cluster cluster = cluster_of(*find_device("h100"), 8);
  const Levels levels(built_in_evidence(), default_stack("h100", false), llama, task, "h100");
  const TrainingEstimate formula = estimate_training(llama, {.dp = 8}, task, cluster);
  const TrainingEstimate estimate = at_level(formula, levels);
  EXPECT_NEAR(estimate.parts.total(), estimate.step_s, 1e-9 * estimate.step_s);
  EXPECT_NEAR(estimate.step_s, levels.times(formula.layout) * formula.step_s, 1e-12);
  EXPECT_LT(estimate.low_s, estimate.step_s);
  EXPECT_GT(estimate.high_s, estimate.step_s);
  const Ranking<TrainingEstimate> ranking =
      search_training(llama, task, cluster, {.levels = &levels});
  ASSERT_FALSE(ranking.best.empty());
  for (const TrainingEstimate& one : ranking.best) {
    EXPECT_LT(one.low_s, one.step_s);
    EXPECT_GT(one.high_s, one.step_s);
  }
}

constexpr std::string_view kHeader =
    "model,device,gpus,precision,batch,mb,sequence,tp,pp,step_ms\n";

Parsed<MeasuredTable> table_of(const std::string& row) {
  return parse_measured_steps(std::string(kHeader) + row + "\n");
}

TEST(Measured, EmptyCellsAreNamed) {
  EXPECT_TRUE(table_of("llama3-8b,h100,8,bf16,64,1,4096,1,1,900"));
  const std::pair<const char*, const char*> kWrong[] = {
      {"llama3-8b,h100,8,,64,1,4096,1,1,900", "precision"},
      {",h100,8,bf16,64,1,4096,1,1,900", "model"},
      {"llama3-8b,,8,bf16,64,1,4096,1,1,900", "device"},
      {"llama3-8b,h100,,bf16,64,1,4096,1,1,900", "gpus"},
      {"llama3-8b,h100,8,bf16,,1,4096,1,1,900", "batch"},
      {"llama3-8b,h100,8,bf16,64,1,,1,1,900", "sequence"},
      {"llama3-8b,h100,8,bf16,64,1,4096,1,1,", "step_ms"},
      {"llama3-8b,h100,8,int3,64,1,4096,1,1,900", "precision"},
      {"llama3-8b,h100,8,bf16,64,1,4096,x,1,900", "tp"},
      {"llama3-8b,h100,8,bf16,64,1,4096,3,1,900", "8 gpus"},
      {"llama3-8b,h100,8,bf16,64,1,4096,1,1,-9", "step_ms"},
      {"llama3-8b,h100", "2 cells"}};
  for (const auto& [row, word] : kWrong) {
    const Parsed<MeasuredTable> refused = table_of(row);
    EXPECT_FALSE(refused) << row;
    EXPECT_EQ(refused.position, "line 2") << row;
    EXPECT_NE(refused.message.find(word), std::string::npos) << refused.message;
  }
}

TEST(Measured, PublishedTablesAreRead) {
  const Parsed<MeasuredTable> table = parse_measured_steps(
      "# source: here\n"
      "release,phase,model,system,gpus,precision,gbs,mbs,seq,fsdp,tp,pp,cp,vp,ep,ga,tokens_s_gpu\n"
      "26.04,Pre-Training Performance,llama3-70b,DGX-H100,64,FP8,256,1,8192,0,4,8,1,5,n/a,,1633\n"
      "26.04,Pre-Training Performance,llama3-70b,DGX-GB200,64,FP8-CS (FP8-MX),256,2,8192,64,1,1,1,"
      "n/a,n/a,,4312 (4000)\n"
      "26.04,LoRA Performance,llama3-70b,DGX-H100,8,FP8,32,1,4096,,1,2,1,20,n/a,,7447\n");
  ASSERT_TRUE(table) << table.message;
  EXPECT_EQ(table.value->source, "here");
  ASSERT_EQ(table.value->steps.size(), 2U);
  EXPECT_EQ(table.value->steps[0].device, "h100");
  EXPECT_EQ(table.value->steps[0].layout.dp, 2);
  EXPECT_EQ(table.value->steps[0].layout.zero, 1);
  EXPECT_EQ(table.value->steps[1].layout.zero, 3);
  EXPECT_EQ(table.value->steps[1].cluster.domain, 64);
  EXPECT_NEAR(table.value->steps[1].step_s, 256 * 8192.0 / 64 / 4312, 1e-9);
  ASSERT_EQ(table.value->left_out.size(), 1U);
  EXPECT_EQ(table.value->unread, std::vector<std::string>{"ga"});
}

// Recovers the constants from times computed with them, as far as the rows determine them.
TEST(Measured, ConstantsAreFitted) {
  std::vector<MeasuredStep> steps;
  for (const MeasuredStep& step : built_in_evidence().steps()) {
    if (is_of_a100(step)) {
      steps.push_back(step);
    }
  }
  const Constants real{.compute = 1.6, .memory = 2.5, .network = 1.3};
  for (MeasuredStep& step : steps) {
    step.cluster.device.constants = real;
    step.step_s = predict({step}).front();
  }
  const Constants fitted = fit_constants(steps, {});
  EXPECT_NEAR(fitted.compute, real.compute, 0.05);
  EXPECT_NEAR(fitted.memory, real.memory, 0.3);
  // One row determines one factor, and no row makes a device better than its data sheet.
  steps.resize(1);
  const Constants one = fit_constants(steps, {});
  EXPECT_NEAR(one.compute / one.memory, Constants{}.compute / Constants{}.memory, 1e-9);
  steps.front().step_s /= 10;
  const Constants best = fit_constants(steps, {});
  EXPECT_GE(best.compute, 1);
  EXPECT_GE(best.network, 1);
}

TEST(Kriging, AMeasuredPlaceIsMetAndAFarOneIsNot) {
  const Kriging two({1, 0.5, 0.5, 1}, {1, 2});
  const std::vector<double> at_first = {1, 0.5};
  EXPECT_NEAR(two.at(at_first, 1).mean, 1, 1e-12);
  EXPECT_NEAR(two.at(at_first, 1).deviation, 0, 1e-6);
  const std::vector<double> far = {0, 0};
  EXPECT_EQ(two.at(far, 1).mean, 0);
  EXPECT_EQ(two.at(far, 1).deviation, 1);
  EXPECT_NEAR(two.left_out()[0].mean, 0.5 * 2, 1e-12);
  EXPECT_NEAR(two.left_out()[0].deviation, std::sqrt(0.75), 1e-12);
  EXPECT_TRUE(Kriging().left_out().empty());
}

TEST(Devices, PartsOfMachines) {
  const Parsed<Topology> racks = make_preset("gb200_nvl72:racks=2");
  ASSERT_TRUE(racks);
  const DeviceModel gb200 = *find_device("gb200");
  const Cluster eight = cluster_of(part_of(*racks.value, 8), gb200);
  EXPECT_EQ(eight.devices, 8);
  EXPECT_EQ(eight.domain, 8);
  const Cluster both = cluster_of(part_of(*racks.value, 128), gb200);
  EXPECT_EQ(both.devices, 128);
  EXPECT_EQ(both.domain, 64);
  EXPECT_EQ(cluster_of(gb200, 128).domain, 64);
  EXPECT_LT(both.far_bytes_per_s, both.near_bytes_per_s);
  EXPECT_THROW(part_of(*racks.value, 145), Error);
  EXPECT_THROW(part_of(*racks.value, 73), Error);
  EXPECT_THROW(part_of(*racks.value, 0), Error);
  EXPECT_EQ(part_of(*racks.value, 1).rank_count(), 1);
}

TEST(Devices, FilesDescribeOthers) {
  const std::string file =
      R"({"format": "unisono.device/1", "name": "mine", "bf16_tflops": 100, "memory_gb": 32,
          "memory_gb_per_s": 1000, "multiprocessors": 64)";
  const Parsed<DeviceModel> device = parse_device_json(file + "}");
  ASSERT_TRUE(device) << device.message;
  EXPECT_EQ(device.value->flops(Precision::f4), 100e12);
  EXPECT_EQ(device.value->memory_bytes, 32e9);
  EXPECT_FALSE(parse_device_json(R"({"format": "unisono.device/1", "name": "mine"})"));
  EXPECT_EQ(parse_device_json(file + R"(, "domain": 0})").position, "/domain");
  EXPECT_EQ(parse_device_json(file + R"(, "far_gb_per_s": 0})").position, "/far_gb_per_s");
  EXPECT_FALSE(parse_device_json(file + R"(, "color": 3})"));
}

}  // namespace
}  // namespace unisono::planner
