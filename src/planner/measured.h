// Tables of measured training steps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "planner/layout.h"

namespace unisono::planner {

struct MeasuredStep {
  std::size_t line = 0;
  std::string stack = {};   // "megatron-bridge-26.04": the training program and its release
  std::string model = {};   // as named in the table
  std::string device = {};  // "h100"
  double year = 0;          // such as 2024.5; 0: unknown
  ModelShape shape = {};
  Layout layout = {};
  TrainingTask task = {};
  Cluster cluster = {};
  double step_s = 0;
};

struct MeasuredTable {
  std::string source = {};
  std::vector<MeasuredStep> steps = {};
  std::vector<std::string> left_out = {};  // rows that the planner cannot describe, with the
                                           // reasons
  std::vector<std::string> unread = {};    // unknown columns
};

// Maps a table's names to models and devices, and supplies the columns that it may omit.
struct TableReader {
  std::function<std::optional<ModelShape>(const std::string&)> model = find_model;
  std::function<std::optional<DeviceModel>(const std::string&)> device = find_device;
  std::string asked_model = {};  // for the rows of a table without the column
  std::string asked_device = {};
};

// Parses CSV with a header. Columns:
//   model, device, precision, batch, sequence
//   step_s, step_ms, tokens_s_gpu or tflops_gpu; or metric (one of these names) and measured
//   gpus or dp, and the layout: tp, pp, cp, uly, vp, ep, mb, zero or fsdp, recompute
//   stack, date     the training program, and the year and month ("2026-04")
//   layers          replaces the model's number of layers
//   hidden, heads   with layers: the shape of a model whose name begins with "gpt"
// Lines that begin with # describe the table: "# source: ..." and "# attention: materialised".
// Fails if a cell that the prediction needs is empty or invalid.
Parsed<MeasuredTable> parse_measured_steps(std::string_view text, const TableReader& reader = {});

// Returns predictions with the constants of the clusters.
std::vector<double> predict(const std::vector<MeasuredStep>& steps);

// Returns the constants that minimise the median error over all of these steps; each is at least 1.
// Fits as many constants as the steps can distinguish: one common factor below three steps, compute
// and memory below six, then also the network; and the expert constant if some models have experts.
Constants fit_constants(const std::vector<MeasuredStep>& steps, Constants start);

}  // namespace unisono::planner
