// Tables of measured steps, and the constants of a device fitted to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "planner/serving.h"
#include "planner/training.h"

namespace unisono::planner {

struct MeasuredStep {
  std::string model = {};   // as the table names it
  std::string device = {};  // "h100"
  std::string release = {};
  ModelShape shape = {};
  Layout layout = {};
  TrainingTask task = {};
  Cluster cluster = {};
  double step_s = 0;
};

struct MeasuredTables {
  std::vector<MeasuredStep> steps = {};
  std::vector<std::string> left_out = {};  // rows that cannot be told of, with the reason
};

// CSV with a header, in one of two forms: a row says the sizes of a GPT and how many milliseconds
// its step took (model, gpus, global_batch, micro_batch, sequence, hidden, heads, layers, tp, pp,
// dp, step_ms; of A100, with all recomputed), or names a model and its throughput (release, model,
// system, gpus, precision, gbs, mbs, seq, fsdp, tp, pp, cp, vp, ep, tokens_s_gpu).
Parsed<MeasuredTables> parse_measured_steps(std::string_view text);

struct Residuals {
  double median = 0;  // of |predicted / measured - 1|
  double p90 = 0;
  double order = 0;  // Kendall's tau of predicted and measured throughput a device
};
Residuals residuals_of(const std::vector<MeasuredStep>& steps,
                       const std::vector<double>& predicted_s);

// Predictions with the constants that the clusters have.
std::vector<double> predict(const std::vector<MeasuredStep>& steps);

// The constants that make the median of the errors least, of all these steps together: compute and
// memory, of models with experts those of experts, and the network where `with_network`.
Constants fit_constants(const std::vector<MeasuredStep>& steps, Constants start, bool with_network);

}  // namespace unisono::planner
