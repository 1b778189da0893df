#include "select/encoded.h"

#include <cstdio>

#include "base/collectives.h"

namespace unisono::comm {
namespace {

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", number);
  return text;
}

bool is_sum(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum;
}

}  // namespace

Refused refusal_of_max_error(const Call& call, double max_error) {
  const std::string asked = "max_error " + number_text(max_error);
  if (!(max_error > 0)) {
    return {asked + " is not a valid error bound",
            "give a positive number, such as 0.01, or 0 for an exact result"};
  }
  if (is_v_form(call.collective) || is_scan(call.collective) || !moves_data(call.collective)) {
    return {asked + " is not supported for " + std::string(to_string(call.collective)),
            "it is supported for broadcast, reduce, all_reduce, scatter, gather, all_gather, "
            "reduce_scatter and all_to_all of f32"};
  }
  if (call.dtype != Dtype::f32) {
    return {asked + " is not supported for " + std::string(to_string(call.dtype)) +
                ": only f32 is encoded",
            "use f32, or remove max_error"};
  }
  if (reduces(call.collective) && !is_sum(call.reduction.op)) {
    return {asked + " is not supported for " + std::string(to_string(call.reduction.op)) +
                ": only sums are encoded",
            "use sum, avg or premul_sum, or remove max_error"};
  }
  if (max_error < kLeastMaxError) {
    return {asked + " is below the error of the most precise code, which is " +
                number_text(kLeastMaxError),
            "give at least " + number_text(kLeastMaxError) + " (bf16) or " +
                number_text(sum_error(MoveCode::i8).normal) + " (i8), or remove max_error"};
  }
  return {};
}

std::string encoded_key(const cost::EncodedAlgorithm& algorithm, int root,
                        std::span<const int> hosts) {
  std::string key = algorithm.title + "/" + std::to_string(root) + "@";
  for (const int host : hosts) {
    key += std::to_string(host) + ",";
  }
  return key + std::string(to_string(algorithm.schedule->collective));
}

}  // namespace unisono::comm
