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
    // None of its ranks has connected, or all are on other hosts. Whatever it is: the job ends now,
    // and what can be said of it is not worth that it does not.
  }
  return findings;
}

}  // namespace unisono::cli
