#include "weights/model_layout.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/words.h"
#include "unisono/error.hpp"

namespace unisono::weights {
namespace {

struct NamedAxis {
  std::string_view name;
  int ModelLayout::* size;
  bool is_of_experts = false;  // expert axes do not add ranks
};
// The slowest-varying axis comes first.
constexpr auto kAxes = std::to_array<NamedAxis>({{"pp", &ModelLayout::pp},
                                                 {"dp", &ModelLayout::dp},
                                                 {"fsdp", &ModelLayout::fsdp},
                                                 {"cp", &ModelLayout::cp},
                                                 {"tp", &ModelLayout::tp},
                                                 {"ep", &ModelLayout::ep, true},
                                                 {"etp", &ModelLayout::etp, true}});

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::config,
              "model layout: " + what + "\nwrite it as \"tp=8,pp=4,dp=2,ep=16 on 0-63\"");
}

void read_axis(std::string_view word, ModelLayout& layout, std::vector<std::string_view>& seen) {
  const std::size_t equals = word.find('=');
  const std::string_view name = trimmed(word.substr(0, equals));
  const auto* const axis = std::ranges::find(kAxes, name, &NamedAxis::name);
  if (axis == kAxes.end() || equals == std::string_view::npos) {
    refuse(in_quotes(word) + " is not an axis with its size: pp, dp, fsdp, cp, tp, ep or etp");
  }
  if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
    refuse("axis " + std::string(name) + " appears twice");
  }
  seen.push_back(name);
  constexpr int kMost = 1 << 20;
  const std::string_view number = trimmed(word.substr(equals + 1));
  int& size = layout.*axis->size;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), size);
  if (error != std::errc() || end != number.data() + number.size() || size < 1 || size > kMost) {
    refuse(in_quotes(word) + ": a size is 1 to 2^20");
  }
}

std::string axes_text(const ModelLayout& layout, bool of_experts) {
  std::string text;
  for (const NamedAxis& axis : kAxes) {
    if (layout.*axis.size > 1 && axis.is_of_experts == of_experts) {
      text += (text.empty() ? "" : ",") + std::string(axis.name) + "=" +
              std::to_string(layout.*axis.size);
    }
  }
  return text;
}

std::string mesh_text(const ModelLayout& layout) {
  const std::string text = axes_text(layout, false);
  return text.empty() ? "tp=1" : text;
}

}  // namespace

ModelLayout ModelLayout::parse(std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    refuse(in_quotes(text) + " has placements, which follow from the model");
  }
  const std::size_t on = text.find(" on ");
  ModelLayout layout;
  std::vector<std::string_view> seen;
  for (std::string_view left = text.substr(0, on);;) {
    const std::size_t end = left.find_first_of(",;");
    read_axis(trimmed(left.substr(0, end)), layout, seen);
    if (end == std::string_view::npos) {
      break;
    }
    left.remove_prefix(end + 1);
  }
  double product = 1;
  for (const NamedAxis& axis : kAxes) {
    product *= axis.is_of_experts ? 1 : layout.*axis.size;
  }
  if (product > 1 << 20) {
    refuse("more than 2^20 ranks");
  }
  if (on != std::string_view::npos) {
    layout.ranks =
        parallel::MeshLayout::parse(mesh_text(layout) + std::string(text.substr(on))).ranks;
  }
  if (layout.stage_ranks() % (static_cast<long long>(layout.ep) * layout.etp) != 0) {
    refuse("the " + std::to_string(layout.stage_ranks()) + " ranks of a stage are not divided by " +
           "ep * etp = " + std::to_string(static_cast<long long>(layout.ep) * layout.etp));
  }
  if (layout.fsdp > 1 && (layout.ep > 1 || layout.etp > 1)) {
    refuse("fsdp does not go with ep and etp");
  }
  return layout;
}

int ModelLayout::last_rank() const {
  return ranks.empty() ? rank_count() - 1 : *std::max_element(ranks.begin(), ranks.end());
}

std::vector<int> ModelLayout::stage(int index) const {
  std::vector<int> own;
  for (int i = 0; i < stage_ranks(); ++i) {
    const int position = index * stage_ranks() + i;
    own.push_back(ranks.empty() ? position : ranks[static_cast<std::size_t>(position)]);
  }
  return own;
}

std::string ModelLayout::text() const {
  // Ranks are 0, 1, 2, ... unless the layout lists them.
  std::vector<int> all = ranks;
  for (int rank = 0; all.size() < static_cast<std::size_t>(rank_count()); ++rank) {
    all.push_back(rank);
  }
  const std::string mesh = mesh_text(*this);
  const std::string whole =
      parallel::MeshLayout{.mesh = parallel::MeshShape::parse(mesh), .ranks = all}.text();
  const std::string experts = axes_text(*this, true);
  return mesh + (experts.empty() ? "" : "," + experts) + whole.substr(whole.find(" on "));
}

}  // namespace unisono::weights
