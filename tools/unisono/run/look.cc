#include "run/look.h"

#include <exception>

namespace unisono::cli {

std::vector<Finding> look_around(const std::string& job) {
  std::vector<Finding> findings;
  try {
    for (const Job& part : find_jobs(job)) {
      for (Finding& finding : explain_hang(part, comm::flight_clock_ns())) {
        if (!finding.later.empty()) {
          finding.next = finding.later;
        }
        findings.push_back(std::move(finding));
      }
    }
  } catch (const std::exception&) {
    // No rank of the job has connected, or all are on other hosts. The job ends now in any case, so
    // the description is skipped without delay.
  }
  return findings;
}

}  // namespace unisono::cli
