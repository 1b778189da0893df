// Estimates token times of a served model. Requests of equal length are batched continuously: at
// any time as many are active as the concurrency says, and prompts are read between the steps of
// the requests that are being answered.
#pragma once

#include <optional>
#include <span>

#include "planner/arrivals.h"
#include "planner/layout.h"
#include "planner/memory.h"

namespace unisono::planner {

// Speculative decoding: a small model drafts tokens, and one step of the large one checks them all.
// A step gives the accepted ones and one more, 1 + a + a^2 + ... + a^drafted in the mean (Leviathan
// et al., "Fast Inference from Transformers via Speculative Decoding", 2023, equation 1).
struct Speculation {
  int drafted = 0;      // tokens a step; 0: none
  double accepted = 0;  // the chance that one is right, if those before it are
  double cost = 0;      // of drafting one token, in steps of the large model for one token

  double tokens_per_step() const;
};

// Returns what 3,0.8 or 3,0.8,0.02 says; without a third number, drafting a token takes as long as
// one layer. Unset: the numbers are not of that kind.
std::optional<Speculation> speculation_of(std::span<const double> numbers, const ModelShape& shape);

struct ServingTask {
  double input = 1;   // tokens of a prompt
  double output = 1;  // of an answer
  double concurrency = 1;
  Precision weights = Precision::bf16;  // what they are multiplied in, and stored in, but for:
  std::optional<StoredWeights> stored = {};
  Precision cache = Precision::bf16;
  double imbalance = 1;    // rows of the busiest device's experts, over the mean
  double prefix_hits = 0;  // the share of a prompt that is in the cache already
  Speculation speculation = {};
  double requests_per_s = 0;  // that arrive at random, for all instances; 0: one as another ends
};

// One instance of the model: dp groups of tp x pp devices. Each group answers requests of its own
// with all of the model but the experts, which are spread over ep devices of all groups.
struct ServingLayout {
  int tp = 1;
  int pp = 1;
  int ep = 1;
  int dp = 1;
  int instances = 1;

  int devices() const { return tp * pp * dp * instances; }
};

std::string text_of(const ServingLayout& layout);

// Seconds of one output token, in the mean.
struct TokenParts {
  double weights = 0;   // read from memory
  double cache = 0;     // read from memory
  double products = 0;  // where they take longer than the weights
  double layers = 0;    // kernels and their exchanges, whatever their size
  double exchange = 0;  // bytes between devices of tp
  double experts = 0;   // bytes of tokens to their experts and back
  double requests = 0;  // scheduling, sampling, by request
  double draft = 0;     // of speculative decoding
  double prompts = 0;   // of others, read in between

  double total() const {
    return weights + cache + products + layers + exchange + experts + requests + draft + prompts;
  }
};

// Devices that only read prompts, and give the caches to those that answer.
struct PromptPool {
  ServingLayout layout = {.instances = 0};  // without an instance: there is no pool
  double prompt_s = 0;                      // of one prompt, and so of all devices of a group
  MemoryParts memory = {};
};

struct ServingEstimate {
  ServingLayout layout = {};
  PromptPool prompts = {};
  double concurrency = 0;  // of one instance
  TokenParts parts = {};
  MemoryParts memory = {};
  double first_token_s = 0;  // in the mean, under this load
  double token_s = 0;        // between two tokens of an answer
  double tokens_per_s_device = 0;
  // Set if requests arrive at random; unset: they cannot all be answered.
  std::optional<Waits> waits = {};
  double most_requests_per_s = 0;  // that all instances can answer

  // Returns how much a million tokens take, if a device takes `per_hour`.
  double per_million_tokens(double per_hour) const {
    constexpr double kSecondsPerHour = 3600;
    return per_hour * 1e6 / (kSecondsPerHour * tokens_per_s_device);
  }
};

// Slowdowns of serving against the data sheet: one set for all devices and engines. The guide names
// the measurements that they were fitted to.
struct ServingConstants {
  double memory = 1.06;
  double prompts = 1.54;
  double layer_s = 68e-6;
  double request_s = 25.5e-6;
  // The first token waits for a step, its own prompt, and a share of the prompts of others, where a
  // request follows as soon as one ends.
  double first_s = 71.9e-3;
  double own_prompt = 1.31;
  double other_prompts = 0.0679;
  double first_request_s = 1.83e-3;  // for each request that is under way
};

// Nine of ten deployments that were measured, of dense models on H100, H200 and B200, need this
// share more or less for a token than predicted. No other kind of deployment was measured.
inline constexpr double kServingMargin = 0.22;
// The same of the time to the first token.
inline constexpr double kFirstTokenMargin = 0.65;
bool is_serving_measured(const ModelShape& shape, std::string_view device);

// Weights as the checkpoint stores them, multiplied as it is meant where the device does that, else
// in bf16. A checkpoint that is not quantised: bf16.
void take_stored(const ModelShape& shape, const DeviceModel& device, ServingTask& task);

// The task with the requests of one instance: those that it says, else one for each group.
ServingTask asked_of(ServingTask task, const ServingLayout& layout);
std::string problem_of(const ModelShape& shape, const ServingLayout& layout,
                       const ServingTask& task);

// Returns the layout that "tp=4,pp=2,dp=2" says, with as many instances as the devices allow unless
// it says how many; experts are spread over tp x dp where that is possible.
// Errors: Error(usage) for an unknown axis, a wrong number, or more devices than there are.
ServingLayout parse_serving_layout(std::string_view text, const ModelShape& shape, int devices);

// Time to the first token of a prompt of `prompt_s` through `stages`, with `others` under way.
double first_token_s(double prompt_s, int stages, double others,
                     const ServingConstants& constants = {});

// Devices that answer and read no prompts, and those that only read prompts, each as one instance.
// REQUIRES: problem_of() is empty.
ServingEstimate estimate_answers(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants = {});
PromptPool estimate_prompts(const ModelShape& shape, const ServingLayout& layout,
                            const ServingTask& task, const Cluster& cluster,
                            const ServingConstants& constants = {});

// Each describes one group (a dp-th part of an instance) to play_arrivals(): one that only reads
// prompts; one that only answers, at most `at_once` requests.
RequestServer prompt_server(const PromptPool& pool, const ServingConstants& constants = {});
RequestServer answer_server(const ModelShape& shape, const ServingLayout& layout, ServingTask task,
                            const Cluster& cluster, int at_once,
                            const ServingConstants& constants = {});

// REQUIRES: problem_of() is empty. Concurrency is of one instance.
ServingEstimate estimate_serving(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants = {});

}  // namespace unisono::planner
