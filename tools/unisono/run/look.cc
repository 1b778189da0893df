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
    // No rank of it has connected, or all are on other hosts. In any case the job ends now, and a
    // description is not worth a delay.
  }
  return findings;
}

}  // namespace unisono::cli
