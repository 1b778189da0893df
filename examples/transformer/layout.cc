#include "layout.h"

#include <array>
#include <charconv>
#include <sstream>
#include <unisono/error.hpp>
#include <unisono/parallel/mesh.hpp>

namespace transformer {
namespace {

namespace up = unisono::parallel;

constexpr std::array<const char*, 6> kAxes = {"pp", "rep", "dp", "cp", "uly", "tp"};

constexpr const char* kLayouts[] = {
    "tp=1",
    "tp=1 zero=3 vocab sp",
    // 2 ranks
    "dp=2",
    "dp=2 zero=1",
    "dp=2 zero=2",
    "dp=2 zero=3",
    "rep=2",
    "tp=2",
    "tp=2 sp",
    "tp=2 vocab",
    "tp=2 sp vocab",
    "pp=2 naive",
    "pp=2 gpipe",
    "pp=2 1f1b",
    "pp=2 interleaved v=2",
    "pp=2 zb-h1",
    "pp=2 zb-h2",
    "pp=2 zbv",
    "pp=2 v-half",
    "pp=2 v-min",
    "pp=2 dualpipe",
    "pp=2 dualpipev",
    "cp=2",
    "cp=2 contiguous",
    "cp=2 striped",
    "cp=2 all_gather",
    "uly=2",
    "cp=2 zero=3",
    "tp=2 sp vocab zero=3",
    // 4 ranks
    "dp=4",
    "dp=4 zero=1",
    "dp=4 zero=2",
    "dp=4 zero=3",
    "rep=2,dp=2 zero=1",
    "rep=2,dp=2 zero=2",
    "rep=2,dp=2 zero=3",
    "tp=4",
    "tp=4 sp",
    "tp=4 sp vocab",
    "dp=2,tp=2",
    "dp=2,tp=2 sp zero=3",
    "cp=4",
    "cp=4 striped",
    "cp=4 all_gather",
    "uly=4",
    "cp=2,uly=2",
    "cp=2,uly=2 all_gather",
    "dp=2,cp=2 zero=2",
    "cp=2,tp=2 sp vocab",
    "uly=2,tp=2 sp",
    "pp=4 naive",
    "pp=4 gpipe",
    "pp=4 1f1b",
    "pp=4 interleaved v=2",
    "pp=4 zb-h1",
    "pp=4 zb-h2",
    "pp=4 zbv",
    "pp=4 v-half",
    "pp=4 v-min",
    "pp=4 dualpipe",
    "pp=4 dualpipev",
    "pp=2,dp=2 1f1b m=4",
    "pp=2,dp=2 zbv m=4 zero=2",
    "pp=2,dp=2 dualpipe m=4 zero=3",
    "pp=2,tp=2 zb-h1",
    "pp=2,tp=2 interleaved v=2 sp vocab",
    "pp=2,cp=2 dualpipev zero=1",
    // 8 ranks
    "dp=8 zero=3",
    "tp=8",
    "tp=8 sp vocab",
    "cp=8",
    "cp=4,uly=2",
    "cp=2,uly=4 all_gather",
    "rep=2,dp=4 zero=3",
    "dp=2,tp=4 sp vocab zero=1",
    "dp=4,cp=2 zero=3",
    "dp=2,cp=2,tp=2 sp vocab zero=3",
    "dp=2,cp=2,tp=2 zero=1",
    "dp=2,uly=2,tp=2 vocab zero=2",
    "rep=2,dp=2,tp=2 sp zero=3",
    "cp=2,uly=2,tp=2 sp vocab zero=3",
    "pp=2,dp=2,tp=2 zb-h1 m=4 sp vocab zero=3",
    "pp=4,tp=2 dualpipe sp vocab",
    "pp=4,dp=2 v-half m=4",
};

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw unisono::Error(
      unisono::ErrorCode::config,
      "layout \"" + text + "\": " + what + "\nwrite it as \"dp=2,cp=2,tp=2 zero=3 sp vocab\"");
}

int number_in(const Layout& layout, const std::string& word) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size() || number < 1) {
    refuse(layout.text, "\"" + word + "\" has no number of 1 or more");
  }
  return number;
}

void read_word(Layout& layout, const std::string& word) {
  if (word.size() == 6 && word.starts_with("zero=") && word[5] >= '0' && word[5] <= '3') {
    layout.stage = word[5] - '0';
  } else if (word == "sp") {
    layout.sequence = true;
  } else if (word == "vocab") {
    layout.vocabulary = true;
  } else if (word == "all_gather") {
    layout.method = up::ContextMethod::all_gather;
  } else if (word == "contiguous") {
    layout.order = up::ContextOrder::contiguous;
  } else if (word == "striped") {
    layout.order = up::ContextOrder::striped;
  } else if (word.starts_with("m=")) {
    layout.microbatches = number_in(layout, word);
  } else if (word.starts_with("v=")) {
    layout.chunks = number_in(layout, word);
  } else if (layout.schedule.empty() && layout.text.starts_with("pp=")) {
    layout.schedule = word;
  } else {
    refuse(layout.text, "\"" + word + "\" is not known");
  }
}

}  // namespace

Layout parse_layout(const std::string& text) {
  std::istringstream words(text);
  std::string axes;
  words >> axes;
  const up::MeshShape given = up::MeshShape::parse(axes);
  Layout layout{.text = text, .ranks = given.ranks()};
  int found = 0;
  for (const char* axis : kAxes) {
    int size = 1;
    for (const up::Axis& one : given.axes()) {
      if (one.name == axis) {
        size = one.size;
        ++found;
      }
    }
    layout.mesh +=
        (layout.mesh.empty() ? "" : ",") + std::string(axis) + "=" + std::to_string(size);
  }
  if (found != static_cast<int>(given.axes().size()) || !given.folded().empty()) {
    refuse(text, "the axes of this model are pp, rep, dp, cp, uly and tp");
  }
  for (std::string word; words >> word;) {
    read_word(layout, word);
  }
  if (layout.schedule.empty() && layout.text.starts_with("pp=")) {
    refuse(text, "a pipeline needs a schedule, such as \"pp=2 1f1b m=8\"");
  }
  return layout;
}

std::vector<Layout> layouts_on(int ranks) {
  std::vector<Layout> all;
  for (const char* text : kLayouts) {
    Layout layout = parse_layout(text);
    if (layout.ranks == ranks) {
      all.push_back(std::move(layout));
    }
  }
  return all;
}

}  // namespace transformer
