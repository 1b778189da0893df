#include "schedule/verify.h"

#include <utility>

#include "schedule/proofs.h"

namespace unisono {

std::vector<Finding> verify(const Schedule& schedule) {
  Findings findings;
  check_structure(schedule, findings);
  if (findings.empty()) {
    check_data_flow(schedule, findings);
    check_progress(schedule, Aliasing::none, findings);
  }
  return std::move(findings).take();
}

std::vector<Finding> verify_in_place(const Schedule& schedule) {
  Findings findings;
  check_structure(schedule, findings);
  if (findings.empty()) {
    check_stale_input(schedule, findings);
    check_progress(schedule, Aliasing::in_place, findings);
  }
  return std::move(findings).take();
}

std::string shown_text(const Finding& finding) {
  const std::string step = "step " + std::to_string(finding.step) + ":";
  return finding.step >= 0 && finding.text.starts_with(step)
             ? "step " + std::to_string(finding.step + 1) + finding.text.substr(step.size() - 1)
             : finding.text;
}

}  // namespace unisono
