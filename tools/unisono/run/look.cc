#include "run/look.h"

#include "cli/failure.h"

namespace unisono::cli {

std::vector<Finding> look_around(const std::string& job) {
  std::vector<Finding> findings;
  try {
    for (const Job& part : find_jobs(job)) {
      for (Finding& finding : explain_hang(part, comm::board_clock_ns())) {
        if (!finding.later.empty()) {
          finding.next = finding.later;
        }
        findings.push_back(std::move(finding));
      }
    }
  } catch (const UsageError&) {
    // None of its ranks has connected, or all are on other hosts.
  }
  return findings;
}

}  // namespace unisono::cli
