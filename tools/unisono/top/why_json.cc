#include "top/why.h"

namespace unisono::cli {

nlohmann::ordered_json findings_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json rows = nlohmann::json::array();
  for (const Finding& finding : findings) {
    rows.push_back({{"kind", finding.kind},
                    {"ranks", finding.ranks},
                    {"waiting", finding.waiting},
                    {"waited_s", finding.waited_s},
                    {"text", finding.text},
                    {"details", finding.details},
                    {"next", finding.next}});
  }
  return rows;
}

}  // namespace unisono::cli
