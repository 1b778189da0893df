#include "record/views.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cli/failure.h"
#include "record/numbers.h"
#include "record/verdict.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

// Recordings of other programs contain no Chinese text.
Text text_of(const std::string& english, const ordered_json& chinese, const char* key) {
  return {english, chinese.value(key, english)};
}

std::vector<Text> details_of(const ordered_json& row, const ordered_json& chinese) {
  const auto english = row.value("details", std::vector<std::string>());
  const auto theirs = chinese.value("details", std::vector<std::string>());
  std::vector<Text> details;
  for (std::size_t i = 0; i < english.size(); ++i) {
    details.push_back({english[i], i < theirs.size() ? theirs[i] : english[i]});
  }
  return details;
}

Finding finding_of(const ordered_json& row) {
  const ordered_json chinese = row.value("chinese", ordered_json::object());
  return {.kind = row.at("kind").get<std::string>(),
          .ranks = ranks_of(row.value("ranks", ordered_json::array()), "/findings/ranks"),
          .waiting = ranks_of(row.value("waiting", ordered_json::array()), "/findings/waiting"),
          .waited_s = row.value("waited_s", 0.0),
          .text = text_of(row.at("text").get<std::string>(), chinese, "text"),
          .details = details_of(row, chinese),
          .next = text_of(row.value("next", std::string()), chinese, "next")};
}

}  // namespace

bool is_about_the_recording(const Finding& finding) {
  return finding.kind == "dropped";
}

std::vector<Finding> explain_recording(const ordered_json& trace) {
  try {
    std::vector<Finding> findings;
    for (const ordered_json& row : trace.value("findings", ordered_json::array())) {
      findings.push_back(finding_of(row));
    }
    if (std::all_of(findings.begin(), findings.end(), is_about_the_recording)) {
      const std::vector<Finding> verdict = verdict_of(job_calls_of(trace));
      findings.insert(findings.begin(), verdict.begin(), verdict.end());
    }
    std::stable_partition(findings.begin(), findings.end(),
                          [](const Finding& each) { return !is_about_the_recording(each); });
    return findings;
  } catch (const nlohmann::json::exception&) {
    throw UsageError("the recording is not whole", "as in docs/formats/trace.md",
                     "unisono run --record FILE makes one");
  }
}

}  // namespace unisono::cli
