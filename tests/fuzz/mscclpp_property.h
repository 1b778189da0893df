// What must hold for any bytes given to the parser of MSCCL++'s plans.
#pragma once

#include <string>
#include <string_view>

#include "mscclpp/check.h"
#include "mscclpp/export.h"
#include "mscclpp/json.h"
#include "schedule/verify.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

// What is proved becomes a schedule that is right, or is refused in words.
inline std::string plan_converted(const mscclpp::ExecutionPlan& plan) {
  try {
    const Schedule schedule = mscclpp::to_schedule(plan);
    const std::vector<Finding> findings = verify(schedule);
    return findings.empty() ? ""
                            : "proved, but its schedule is wrong: " + to_text(findings.front());
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? "" : std::string("refused as ") + error.what();
  }
}

// Empty if it holds, else what does not.
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
  constexpr std::size_t kMost = 1 << 16;  // beyond, a proof takes long
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
  return plan_converted(plan);
}

}  // namespace unisono::fuzz
