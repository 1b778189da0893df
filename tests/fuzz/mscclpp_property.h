// The property of any bytes given to the parser of MSCCL++'s plans.
#pragma once

#include <string>
#include <string_view>

#include "as_schedule.h"
#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string mscclpp_property(std::string_view text) {
  const Parsed<mscclpp::ExecutionPlan> parsed = mscclpp::parse_plan(text);
  if (!parsed) {
    return parsed.message.empty() ? "refused without a message" : "";
  }
  const std::string written = mscclpp::to_json(*parsed.value);
  const Parsed<mscclpp::ExecutionPlan> again = mscclpp::parse_plan(written);
  if (!again) {
    return "not read back: " + again.position + ": " + again.message;
  }
  if (mscclpp::to_json(*again.value) != written) {
    return "not the same when read back";
  }
  constexpr std::size_t kMost = 1 << 16;  // with more, a proof takes long
  if (written.size() > kMost) {
    return "";
  }
  const mscclpp::PlanProof proof = mscclpp::check(*parsed.value);
  for (const executors::Flaw& flaw : proof.flaws) {
    if (to_text(flaw).empty()) {
      return "a flaw without words";
    }
  }
  if (!proof.flaws.empty()) {
    return "";
  }
  mscclpp::ExecutionPlan plan = *parsed.value;
  plan.root = proof.root;
  return as_schedule([&] { return mscclpp::to_schedule(plan); });
}

}  // namespace unisono::fuzz
