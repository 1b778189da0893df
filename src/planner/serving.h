// How long tokens take when a model is served: requests of equal length are batched continuously,
// so that at any time as many are under way as the concurrency says, and prompts are read between
// the steps of those that are answering.
#pragma once

#include <optional>

#include "planner/layout.h"
#include "planner/memory.h"

namespace unisono::planner {

struct ServingTask {
  double input = 1;   // tokens of a prompt
  double output = 1;  // of an answer
  double concurrency = 1;
  Precision weights = Precision::bf16;  // what they are multiplied in, and stored in, but for:
  std::optional<StoredWeights> stored = {};
  Precision cache = Precision::bf16;
};

// One instance of the model: tp x pp devices, of which experts are spread over ep.
struct ServingLayout {
  int tp = 1;
  int pp = 1;
  int ep = 1;
  int instances = 1;

  int devices() const { return tp * pp * instances; }
};

std::string text_of(const ServingLayout& layout);

// Seconds of one output token, in the mean.
struct TokenParts {
  double weights = 0;   // read from memory
  double cache = 0;     // read from memory
  double products = 0;  // where they take longer than the weights
  double layers = 0;    // kernels and their exchanges, whatever their size
  double exchange = 0;  // bytes between devices
  double requests = 0;  // scheduling, sampling, by request
  double prompts = 0;   // of others, read in between

  double total() const {
    return weights + cache + products + layers + exchange + requests + prompts;
  }
};

struct ServingEstimate {
  ServingLayout layout = {};
  double concurrency = 0;  // of one instance
  TokenParts parts = {};
  MemoryParts memory = {};
  double first_token_s = 0;  // of a prompt that waits for no other
  double token_s = 0;        // between two tokens of an answer
  double tokens_per_s_device = 0;
};

// What serving takes beyond the data sheet. One set for all devices and engines; the guide says
// what it was fitted to.
struct ServingConstants {
  double memory = 1.06;
  double prompts = 1.54;
  double layer_s = 68e-6;
  double request_s = 25.5e-6;
};

// Nine of ten deployments that were measured, of dense models on H100, H200 and B200, need this
// share more or less for a token than predicted. No other kind of deployment was measured.
inline constexpr double kServingMargin = 0.22;
bool is_serving_measured(const ModelShape& shape, std::string_view device);

// Weights as the checkpoint stores them, multiplied as it is meant where the device does that, else
// in bf16. A checkpoint that is not quantised: bf16.
void take_stored(const ModelShape& shape, const DeviceModel& device, ServingTask& task);

std::string problem_of(const ModelShape& shape, const ServingLayout& layout,
                       const ServingTask& task);

// REQUIRES: problem_of() is empty. Concurrency is of one instance.
ServingEstimate estimate_serving(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants = {});

}  // namespace unisono::planner
