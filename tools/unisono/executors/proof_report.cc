#include "executors/proof_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/failure.h"

namespace unisono::cli {
namespace {

constexpr std::size_t kMostShown = 20;

void print_as_json(const ProofReport& report) {
  nlohmann::ordered_json result;
  result["schema"] = report.schema;
  result["name"] = report.name;
  result["collective"] = to_string(report.collective);
  result["ranks"] = report.gpus;
  result["in_place"] = report.in_place;
  result["out_of_place"] = report.out_of_place;
  result["right"] = report.flaws.empty();
  result.update(report.numbers);
  result["findings"] = nlohmann::json::array();
  for (const executors::Flaw& flaw : report.flaws) {
    result["findings"].push_back({{"gpu", flaw.at.gpu},
                                  {"thread_block", flaw.at.block},
                                  {"step", flaw.at.step},
                                  {"text", flaw.text}});
  }
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int print_proof(const ProofReport& report, const Console& console) {
  const bool right = report.flaws.empty();
  if (console.json()) {
    print_as_json(report);
    return right ? kDone : kAnswerIsNo;
  }
  const char* const ways = report.in_place && report.out_of_place ? "in place and out of place"
                           : report.in_place                      ? "in place"
                                                                  : "out of place";
  fmt::print("{}  {}  {} GPUs  {}: {}\n", console.paint(Paint::strong, report.name),
             to_string(report.collective), report.gpus, ways,
             right ? console.paint(Paint::good, "right") : console.paint(Paint::bad, "wrong"));
  for (std::size_t i = 0; i < report.flaws.size() && i < kMostShown; ++i) {
    fmt::print("  {}\n", to_text(report.flaws[i]));
  }
  if (report.flaws.size() > kMostShown) {
    fmt::print("  ... and {} more; --json has all\n", report.flaws.size() - kMostShown);
  }
  if (right && !console.quiet()) {
    for (const std::string& remark : report.remarks) {
      fmt::print("  {}\n", remark);
    }
  }
  return right ? kDone : kAnswerIsNo;
}

}  // namespace unisono::cli
