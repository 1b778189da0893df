// Parses and formats layouts.
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/words.h"
#include "unisono/error.hpp"
#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {
namespace {

[[noreturn]] void refuse_text(const std::string& what) {
  throw Error(ErrorCode::config,
              "layout: " + what + "\nwrite it as \"dp=2,tp=4 on 0-7: tp=shard(0) dp=partial\"");
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

// Calls body(item) for each item between separators.
template <typename Body>
void for_each_item(std::string_view text, char separator, const Body& body) {
  for (;;) {
    const std::size_t end = text.find(separator);
    body(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) {
      return;
    }
    text.remove_prefix(end + 1);
  }
}

// Maximum number of ranks or lengths in a text.
constexpr std::size_t kMostItems = std::size_t{1} << 20U;

std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  for_each_item(text, ',', [&](std::string_view item) {
    const std::size_t dash = item.find('-');
    const auto first = number_in<int>(item.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number_in<int>(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first ||
        static_cast<std::size_t>(*last - *first) >= kMostItems) {
      refuse_text(in_quotes(item) + " is neither a rank nor a range of ranks such as 0-7");
    }
    for (int rank = *first; rank <= *last && ranks.size() <= kMostItems; ++rank) {
      ranks.push_back(rank);
    }
  });
  return ranks;
}

// Parses text such as "4096+2*1024".
std::vector<std::size_t> lengths_in(std::string_view text) {
  std::vector<std::size_t> lengths;
  for_each_item(text, '+', [&](std::string_view item) {
    const std::size_t star = item.find('*');
    const auto times = star == std::string_view::npos
                           ? std::optional<std::size_t>(1)
                           : number_in<std::size_t>(item.substr(0, star));
    const auto length =
        number_in<std::size_t>(star == std::string_view::npos ? item : item.substr(star + 1));
    if (!times || !length || *times > kMostItems || lengths.size() > kMostItems) {
      refuse_text(in_quotes(item) + " is neither a length nor a product such as 2*1024");
    }
    lengths.insert(lengths.end(), *times, *length);
  });
  return lengths;
}

std::optional<ReduceOp> op_in(std::string_view text) {
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    if (to_string(op) == text) {
      return op;
    }
  }
  return std::nullopt;
}

void read_shard(std::string_view arguments, std::string_view word, AxisPlacement& placement) {
  std::size_t at = 0;
  for_each_item(arguments, ',', [&](std::string_view item) {
    constexpr std::string_view kSections = "sections=";
    constexpr std::string_view kParts = "parts=";
    if (at++ == 0) {
      const auto dim = number_in<std::size_t>(item);
      if (!dim) {
        refuse_text(in_quotes(word) + " does not name a dimension: shard(0)");
      }
      placement.placement = Shard(*dim);
    } else if (item.starts_with(kSections) && placement.sections.empty()) {
      placement.sections = lengths_in(item.substr(kSections.size()));
    } else if (item.starts_with(kParts) && placement.parts.empty()) {
      placement.parts = lengths_in(item.substr(kParts.size()));
    } else {
      refuse_text(in_quotes(item) + " in " + in_quotes(word) +
                  " is neither sections=A+B nor parts=A+B");
    }
  });
}

AxisPlacement placement_in(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    refuse_text(in_quotes(word) + " is not an axis with its placement");
  }
  AxisPlacement placement{.axis = std::string(word.substr(0, equals))};
  const std::string_view what = word.substr(equals + 1);
  const std::size_t open = what.find('(');
  const std::string_view name = what.substr(0, open);
  std::string_view arguments;
  if (open != std::string_view::npos) {
    if (what.back() != ')') {
      refuse_text(in_quotes(word) + " does not end in a bracket");
    }
    arguments = what.substr(open + 1, what.size() - open - 2);
  }
  if (name == "replicate" && open == std::string_view::npos) {
    placement.placement = Replicate();
  } else if (name == "shard") {
    read_shard(arguments, word, placement);
  } else if (name == "partial") {
    const auto op = open == std::string_view::npos ? ReduceOp::sum : op_in(arguments);
    if (!op) {
      refuse_text(in_quotes(word) + ": an op is sum, prod, min or max");
    }
    placement.placement = Partial(*op);
  } else {
    refuse_text(in_quotes(word) + " is neither replicate nor shard(0) nor partial");
  }
  return placement;
}

std::string lengths_text(std::string_view name, const std::vector<std::size_t>& lengths) {
  std::string text;
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t same = 1;
    while (i + same < lengths.size() && lengths[i + same] == lengths[i]) {
      ++same;
    }
    text += (text.empty() ? "," + std::string(name) + "=" : "+") +
            (same > 1 ? std::to_string(same) + "*" : "") + std::to_string(lengths[i]);
    i += same;
  }
  return text;
}

}  // namespace

MeshLayout MeshLayout::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string_view left = text.substr(0, colon);
  MeshLayout layout;
  const std::size_t on = left.find(" on ");
  layout.mesh = MeshShape::parse(trimmed(left.substr(0, on)));
  if (on != std::string_view::npos) {
    layout.ranks = ranks_in(left.substr(on + 4));
    if (layout.ranks.size() != static_cast<std::size_t>(layout.mesh.ranks())) {
      refuse_text("the mesh " + layout.mesh.text() + " has " + std::to_string(layout.mesh.ranks()) +
                  " positions, and " + std::to_string(layout.ranks.size()) + " ranks are named");
    }
  }
  if (colon != std::string_view::npos) {
    for_each_item(text.substr(colon + 1), ' ', [&](std::string_view word) {
      if (!word.empty()) {
        layout.placements.push_back(placement_in(word));
      }
    });
  }
  return layout;
}

std::string MeshLayout::text() const {
  std::string text = mesh.text();
  if (!ranks.empty()) {
    text += " on ";
    // Writes ranges in mesh order, which may be any order of ranks.
    for (std::size_t i = 0; i < ranks.size();) {
      std::size_t last = i;
      while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
        ++last;
      }
      text += (i == 0 ? "" : ",") + std::to_string(ranks[i]) +
              (last > i ? "-" + std::to_string(ranks[last]) : "");
      i = last + 1;
    }
  }
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const AxisPlacement& one = placements[i];
    std::string placement = to_string(one.placement);
    if (one.placement.kind == Placement::Kind::shard) {
      placement.insert(placement.size() - 1,
                       lengths_text("sections", one.sections) + lengths_text("parts", one.parts));
    }
    text += (i == 0 ? ": " : " ") + one.axis + "=" + placement;
  }
  return text;
}

}  // namespace unisono::parallel
