#include "top/why.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

ordered_json said(const Finding& finding, std::string Text::* language) {
  ordered_json details = nlohmann::json::array();
  for (const Text& detail : finding.details) {
    details.push_back(detail.*language);
  }
  return {{"text", finding.text.*language},
          {"details", std::move(details)},
          {"next", finding.next.*language}};
}

}  // namespace

ordered_json finding_json(const Finding& finding) {
  ordered_json row{{"kind", finding.kind},
                   {"ranks", finding.ranks},
                   {"waiting", finding.waiting},
                   {"waited_s", finding.waited_s}};
  row.update(said(finding, &Text::english));
  row["chinese"] = said(finding, &Text::chinese);
  return row;
}

ordered_json findings_json(const std::vector<Finding>& findings) {
  ordered_json rows = nlohmann::json::array();
  for (const Finding& finding : findings) {
    rows.push_back(finding_json(finding));
  }
  return rows;
}

}  // namespace unisono::cli
