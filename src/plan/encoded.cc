#include "plan/encoded.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "schedule/roundings.h"

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

// From the shortest to the longest.
constexpr MoveCode kCodes[] = {MoveCode::i8, MoveCode::bf16};

}  // namespace

Refused refusal_of_accuracy(const Call& call, double accuracy) {
  const std::string asked = "accuracy " + number_text(accuracy);
  const double least = sum_error(MoveCode::bf16).normal;
  if (!(accuracy > 0)) {
    return {asked + " is no bound of an error",
            "give a positive number, such as 0.01, or 0 for a result that is not rounded"};
  }
  if (call.collective != Collective::all_reduce) {
    return {asked + " can be given for all_reduce alone", "leave it out"};
  }
  if (call.dtype != Dtype::f32 || !is_sum(call.reduction.op)) {
    return {asked + " cannot hold for " + std::string(to_string(call.reduction.op)) + " of " +
                std::string(to_string(call.dtype)) + ": only sums of f32 are encoded",
            "use sum, avg or premul_sum of f32, or leave the accuracy out"};
  }
  if (accuracy < least) {
    return {asked + " is less than any code between hosts can keep, which is " + number_text(least),
            "give at least " + number_text(least) + " (bf16) or " +
                number_text(sum_error(MoveCode::i8).normal) + " (i8), or leave the accuracy out"};
  }
  return {};
}

MoveCode code_for(double accuracy) {
  for (const MoveCode code : kCodes) {
    if (sum_error(code).normal <= accuracy) {
      return code;
    }
  }
  return MoveCode::none;
}

EncodedSchedule encode_proved(const Schedule& plain, const std::string& name,
                              std::span<const int> hosts, MoveCode code) {
  Schedule encoded = encode_moves(plain, hosts, code);
  EncodedSchedule result{.schedule = nullptr,
                         .name = name + "+" + std::string(to_string(code)),
                         .key = {},
                         .code = code,
                         .refusal = {}};
  result.key = result.name + "@";
  for (const int host : hosts) {
    result.key += std::to_string(host) + ",";
  }
  const std::vector<RoundingFault> faults = check_roundings(encoded);
  if (!faults.empty()) {
    const RoundingFault& first = faults.front();
    const std::string step = first.step < 0 ? "" : " in step " + std::to_string(first.step + 1);
    result.refusal = {name + " cannot be encoded between hosts: " + first.what + step,
                      "leave the algorithm out, or the accuracy"};
    return result;
  }
  result.schedule = std::make_shared<const Schedule>(std::move(encoded));
  return result;
}

}  // namespace unisono::comm
