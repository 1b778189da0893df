#include "view/page.h"

#include <algorithm>
#include <set>
#include <vector>

#include "algorithms/catalog.h"
#include "view/pack.h"

// The compiler has no #embed yet, so the assembler includes the file.
asm(".section .rodata\n"
    ".global unisono_page\n"
    ".global unisono_page_end\n"
    "unisono_page:\n"
    ".incbin \"" UNISONO_PAGE
    "\"\n"
    "unisono_page_end:\n"
    ".previous\n");
extern "C" {
extern const char unisono_page[];
extern const char unisono_page_end[];
}

namespace unisono::cli {
namespace {

constexpr int kLeastRanks = 2;
constexpr int kMostRanks = 16;
constexpr std::string_view kPlace = "<!--unisono-data-->";

// The first, second and last rank show every effect of the root.
std::set<int> shown_roots(const Algorithm& algorithm, int ranks) {
  return is_rooted(algorithm.collective) ? std::set<int>{0, 1, ranks - 1} : std::set<int>{0};
}

nlohmann::ordered_json schedules_of(const Algorithm& algorithm) {
  nlohmann::ordered_json schedules = nlohmann::ordered_json::array();
  for (int ranks = kLeastRanks; ranks <= kMostRanks; ++ranks) {
    if (!can_serve(algorithm, {.ranks = ranks})) {
      continue;
    }
    for (const int root : shown_roots(algorithm, ranks)) {
      schedules.push_back(pack(build_schedule(algorithm, {.ranks = ranks, .root = root})));
    }
  }
  return schedules;
}

// Returns the settings that the page offers beside the defaults: numbers of segments, and ranks per
// node.
std::vector<std::string> offered_settings(const Algorithm& algorithm) {
  std::vector<std::string> settings;
  if (algorithm.defaults == nullptr) {
    return settings;
  }
  const AlgorithmParameters defaults = algorithm.defaults(kMostRanks);
  if (defaults.segments > 0 && algorithm.collective == Collective::broadcast) {
    settings = {"segments=1", "segments=2",  "segments=4",
                "segments=8", "segments=16", "segments=32"};
  } else if (defaults.segments > 0) {
    settings = {"segments=1", "segments=4", "segments=16"};
  } else if (defaults.local != AlgorithmParameters::Levels{}) {
    settings = {"local=2", "local=4", "local=8"};
  }
  return settings;
}

// Returns the variants for root 0 only, because the reader changes only the setting there.
nlohmann::ordered_json variants_of(const Algorithm& algorithm) {
  nlohmann::ordered_json variants = nlohmann::ordered_json::array();
  for (const std::string& setting : offered_settings(algorithm)) {
    const AlgorithmParameters parameters =
        parse_parameters(algorithm, std::string(algorithm.name) + ":" + setting);
    nlohmann::ordered_json row;
    row["setting"] = setting;
    row["schedules"] = nlohmann::ordered_json::array();
    for (int ranks = kLeastRanks; ranks <= kMostRanks; ++ranks) {
      const Shape shape{.ranks = ranks, .parameters = parameters};
      if (can_serve(algorithm, shape)) {
        row["schedules"].push_back(pack(build_schedule(algorithm, shape)));
      }
    }
    variants.push_back(std::move(row));
  }
  return variants;
}

}  // namespace

std::string_view empty_page() {
  return {unisono_page, static_cast<std::size_t>(unisono_page_end - unisono_page)};
}

nlohmann::ordered_json catalogue_data() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Algorithm* algorithm : catalog()) {
    nlohmann::ordered_json row;
    row["collective"] = to_string(algorithm->collective);
    row["algorithm"] = algorithm->name;
    row["summary"] = algorithm->summary;
    row["source"] = algorithm->source;
    row["file"] = build_schedule(*algorithm, {.ranks = kLeastRanks}).file;
    row["schedules"] = schedules_of(*algorithm);
    if (nlohmann::ordered_json variants = variants_of(*algorithm); !variants.empty()) {
      row["variants"] = std::move(variants);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string page_with(const nlohmann::ordered_json& data) {
  std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // A name from somebody's file must not end the script element.
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  std::string page(empty_page());
  page.replace(page.find(kPlace), kPlace.size(),
               "<script type=\"application/json\" id=\"unisono-data\">" + text + "</script>");
  return page;
}

}  // namespace unisono::cli
