#include "layout.h"

#include <array>
#include <sstream>
#include <unisono/error.hpp>
#include <unisono/parallel/mesh.hpp>

namespace transformer {
namespace {

namespace up = unisono::parallel;

constexpr std::array<const char*, 5> kAxes = {"rep", "dp", "cp", "uly", "tp"};

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
};

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw unisono::Error(
      unisono::ErrorCode::config,
      "layout \"" + text + "\": " + what + "\nwrite it as \"dp=2,cp=2,tp=2 zero=3 sp vocab\"");
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
    refuse(text, "the axes of this model are rep, dp, cp, uly and tp");
  }
  for (std::string word; words >> word;) {
    read_word(layout, word);
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
