// The property of any bytes given to the parsers of pipelines: JSON, and the CSV of
// torch.distributed.pipelining.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/json.h"
#include "pipeline/run.h"
#include "pipeline/text.h"
#include "pipeline/transfers.h"
#include "pipeline/verify.h"

namespace unisono::fuzz {

// An accepted pipeline can be verified without a crash, and runs to its end if it is right.
inline std::string played(pipeline::Pipeline pipeline) {
  constexpr std::size_t kMost = 5000;  // with more, playing takes long
  std::size_t actions = 0;
  for (const auto& row : pipeline.actions) {
    actions += row.size();
  }
  const auto cells = pipeline.stage_rank.size() * static_cast<std::size_t>(pipeline.microbatches);
  if (actions > kMost || cells > kMost) {
    return "";
  }
  if (!has_transfers(pipeline)) {
    add_transfers(pipeline);
  }
  const pipeline::Verdict verdict = verify(pipeline);
  for (const pipeline::Finding& finding : verdict.findings) {
    if (sentence(finding).empty()) {
      return "a finding without words";
    }
  }
  if (verdict.right() && !run(pipeline).finished()) {
    return "right, and does not come to its end";
  }
  return "";
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string pipeline_property(std::string_view text) {
  const Parsed<pipeline::Pipeline> json = pipeline::parse_pipeline_json(text);
  const Parsed<pipeline::Pipeline> csv = pipeline::parse_csv(text);
  for (const Parsed<pipeline::Pipeline>* parsed : {&json, &csv}) {
    if (!*parsed) {
      if (parsed->message.empty() || parsed->position.empty()) {
        return "refused without message or position";
      }
      continue;
    }
    const pipeline::Pipeline& pipeline = *parsed->value;
    if (check(pipeline)) {
      return "taken, but not right";
    }
    const Parsed<pipeline::Pipeline> again = pipeline::parse_pipeline_json(to_json(pipeline));
    if (!again) {
      return "not read back: " + again.position + ": " + again.message;
    }
    if (*again.value != pipeline) {
      return "not the same when read back";
    }
    if (const std::string problem = played(pipeline); !problem.empty()) {
      return problem;
    }
  }
  return "";
}

}  // namespace unisono::fuzz
