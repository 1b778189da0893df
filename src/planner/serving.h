// Estimates token times of a served model. Requests of equal length are batched continuously: at
// any time the number of active requests equals the concurrency, and prompts are read between the
// steps of the requests being answered.
#pragma once

#include <optional>
#include <span>

#include "planner/arrivals.h"
#include "planner/layout.h"
#include "planner/memory.h"

namespace unisono::planner {

// Speculative decoding: a small model drafts tokens, and one step of the large model checks all of
// them. A step yields the accepted tokens and one more. With a = `accepted`, this is on average 1 +
// a + a^2 + ... + a^drafted (Leviathan et al., "Fast Inference from Transformers via Speculative
// Decoding", 2023, equation 1).
struct Speculation {
  int drafted = 0;      // tokens per step; 0: no speculation
  double accepted = 0;  // probability that a token is right, given that those before it are
  double cost = 0;      // of drafting one token, relative to a one-token step of the large model

  double tokens_per_step() const;
};

// Converts the numbers 3,0.8 or 3,0.8,0.02. Without a third number, drafting a token takes as long
// as one layer. Unset if the numbers are invalid.
std::optional<Speculation> speculation_of(std::span<const double> numbers, const ModelShape& shape);

struct ServingTask {
  double input = 1;   // tokens per prompt
  double output = 1;  // tokens per answer
  double concurrency = 1;
  Precision weights = Precision::bf16;  // for products and storage, unless `stored` is set
  std::optional<StoredWeights> stored = {};
  Precision cache = Precision::bf16;
  double imbalance = 1;    // rows of the busiest device's experts over the mean
  double prefix_hits = 0;  // share of a prompt that is already in the cache
  Speculation speculation = {};
  double requests_per_s = 0;  // random arrivals at all instances; 0: each request follows another
                              // that ends
};

// One instance of the model: dp groups of tp x pp devices. Each group answers its own requests with
// the whole model except the experts, which are spread over ep devices of all groups.
struct ServingLayout {
  int tp = 1;
  int pp = 1;
  int ep = 1;
  int dp = 1;
  int instances = 1;

  int devices() const { return tp * pp * dp * instances; }
};

std::string text_of(const ServingLayout& layout);

// Mean seconds per output token.
struct TokenParts {
  double weights = 0;   // read from memory
  double cache = 0;     // read from memory
  double products = 0;  // the part that exceeds the weights' time
  double layers = 0;    // fixed cost of kernels and their exchanges
  double exchange = 0;  // bytes between the devices of tp
  double experts = 0;   // bytes of tokens to their experts and back
  double requests = 0;  // scheduling and sampling, per request
  double draft = 0;     // speculative decoding
  double prompts = 0;   // prompts of other requests, read in between

  double total() const {
    return weights + cache + products + layers + exchange + experts + requests + draft + prompts;
  }
};

// Devices that only read prompts, and send the caches to the answering devices.
struct PromptPool {
  ServingLayout layout = {.instances = 0};  // without an instance: no pool
  double prompt_s = 0;                      // per prompt; a group reads one at a time
  MemoryParts memory = {};
};

struct ServingEstimate {
  ServingLayout layout = {};
  PromptPool prompts = {};
  double concurrency = 0;  // per instance
  TokenParts parts = {};
  MemoryParts memory = {};
  double first_token_s = 0;  // on average, under this load
  double token_s = 0;        // between two tokens of an answer
  double tokens_per_s_device = 0;
  // Set if requests arrive at random; unset if not all of them can be answered.
  std::optional<Waits> waits = {};
  double most_requests_per_s = 0;  // capacity of all instances

  // Returns the price of a million tokens, if a device costs `per_hour`.
  double per_million_tokens(double per_hour) const {
    constexpr double kSecondsPerHour = 3600;
    return per_hour * 1e6 / (kSecondsPerHour * tokens_per_s_device);
  }
};

// Slowdowns of serving against the data sheet: one set for all devices and engines. The guide lists
// the measurements that they were fitted to.
struct ServingConstants {
  double memory = 1.06;
  double prompts = 1.54;
  double layer_s = 68e-6;
  double request_s = 25.5e-6;
  // The first token waits for a step, its own prompt, and a share of the other requests' prompts,
  // if each request follows one that ends.
  double first_s = 71.9e-3;
  double own_prompt = 1.31;
  double other_prompts = 0.0679;
  double first_request_s = 1.83e-3;  // per concurrent request
};

// Nine of ten measured deployments (dense models on H100, H200 and B200) need at most this share
// more or less time per token than predicted. No other kind of deployment was measured.
inline constexpr double kServingMargin = 0.22;
// The corresponding share for the time to the first token.
inline constexpr double kFirstTokenMargin = 0.65;
bool is_serving_measured(const ModelShape& shape, std::string_view device);

// Uses the checkpoint's stored weights, multiplied in the checkpoint's precision if the device
// supports it, else in bf16. An unquantised checkpoint is bf16.
void take_stored(const ModelShape& shape, const DeviceModel& device, ServingTask& task);

// Returns the task with the requests of one instance: the specified ones, else one per group.
ServingTask asked_of(ServingTask task, const ServingLayout& layout);
std::string problem_of(const ModelShape& shape, const ServingLayout& layout,
                       const ServingTask& task);

// Parses "tp=4,pp=2,dp=2", with as many instances as the devices allow unless the text gives a
// number. Experts are spread over tp x dp if possible.
// Errors: Error(usage) for an unknown axis, a wrong number, or more devices than there are.
ServingLayout parse_serving_layout(std::string_view text, const ModelShape& shape, int devices);

// Returns the time to the first token for a prompt of `prompt_s` through `stages`, with `others`
// concurrent requests.
double first_token_s(double prompt_s, int stages, double others,
                     const ServingConstants& constants = {});

// Estimates devices that only answer, and devices that only read prompts, each as one instance.
// REQUIRES: problem_of() is empty.
ServingEstimate estimate_answers(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants = {});
PromptPool estimate_prompts(const ModelShape& shape, const ServingLayout& layout,
                            const ServingTask& task, const Cluster& cluster,
                            const ServingConstants& constants = {});

// Describe one group (a dp-th part of an instance) for play_arrivals(): a group that only reads
// prompts; and a group that only answers, at most `at_once` requests.
RequestServer prompt_server(const PromptPool& pool, const ServingConstants& constants = {});
RequestServer answer_server(const ModelShape& shape, const ServingLayout& layout, ServingTask task,
                            const Cluster& cluster, int at_once,
                            const ServingConstants& constants = {});

// REQUIRES: problem_of() is empty. The concurrency is per instance.
ServingEstimate estimate_serving(const ModelShape& shape, const ServingLayout& layout,
                                 const ServingTask& task, const Cluster& cluster,
                                 const ServingConstants& constants = {});

}  // namespace unisono::planner
