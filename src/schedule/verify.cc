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

}  // namespace unisono
