// Draws the blocks of one tensor before and after a reshard.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_list.h"
#include "cli/console.h"
#include "reshard/elements.h"
#include "reshards/reshards.h"

namespace unisono::cli {
namespace {

using parallel::ElementRanges;
using parallel::MeshLayout;
using parallel::Range;
using parallel::ReshardMove;
using parallel::ReshardPlan;
using parallel::ReshardTensor;

constexpr std::size_t kMostRows = 64;
constexpr int kGap = 3;

// The ranges between all bounds of the parts of a dimension.
std::vector<Range> cuts_of(const std::vector<ElementRanges>& parts, std::size_t dim) {
  std::set<std::size_t> bounds;
  for (const ElementRanges& part : parts) {
    for (const Range& range : part[dim]) {
      bounds.insert({range.first, range.first + range.count});
    }
  }
  std::vector<Range> cuts;
  for (auto at = bounds.begin(); at != bounds.end() && std::next(at) != bounds.end(); ++at) {
    cuts.push_back({.first = *at, .count = *std::next(at) - *at});
  }
  return cuts;
}

bool has(const ElementRanges& part, const std::vector<Range>& block) {
  for (std::size_t dim = 0; dim < block.size(); ++dim) {
    if (parallel::common(part[dim], {block[dim]}).empty()) {
      return false;
    }
  }
  return true;
}

std::string range_text(const Range& range) {
  return range.count == 1 ? fmt::format("{}", range.first)
                          : fmt::format("{}-{}", range.first, range.first + range.count - 1);
}

using Lines = std::vector<std::string>;

// A grid of blocks, each with some lines.
struct Grid {
  std::vector<std::string> columns = {};
  std::vector<std::string> rows = {};
  std::vector<std::vector<Lines>> cells = {};  // [row][column]
};

Lines drawn(const std::string& title, const Grid& grid) {
  std::size_t label = 0;
  std::vector<std::size_t> widths;
  for (const std::string& row : grid.rows) {
    label = std::max(label, row.size());
  }
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    widths.push_back(grid.columns[column].size());
    for (const auto& row : grid.cells) {
      for (const std::string& line : row[column]) {
        widths.back() = std::max(widths.back(), line.size());
      }
    }
  }
  Lines lines = {title};
  const auto line_of = [&](const std::string& left, const auto& text_at) {
    std::string line = fmt::format("{:>{}}", left, label);
    for (std::size_t column = 0; column < widths.size(); ++column) {
      line += fmt::format("  {:<{}}", text_at(column), widths[column]);
    }
    lines.push_back(line);
  };
  if (grid.columns != Lines{""}) {
    line_of("", [&](std::size_t column) { return grid.columns[column]; });
  }
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    std::size_t height = 1;
    for (const Lines& cell : grid.cells[row]) {
      height = std::max(height, cell.size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      line_of(i == 0 ? grid.rows[row] : "", [&](std::size_t column) {
        const Lines& cell = grid.cells[row][column];
        return i < cell.size() ? cell[i] : std::string();
      });
    }
  }
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);  // npos + 1: a line of blanks
  }
  return lines;
}

class Drawer {
 public:
  Drawer(const ReshardPlan& plan, std::size_t tensor) : tensor_(plan.tensors[tensor]) {
    for (const ReshardMove& move : plan.moves) {
      if (move.tensor == tensor) {
        moves_.push_back(&move);
      }
    }
  }

  // Empty: more than two dimensions are cut, or there are too many blocks.
  Lines before() const {
    const std::vector<ElementRanges> parts = parts_of(tensor_.from);
    return grid("before", cuts(parts), [&](const std::vector<Range>& block) {
      std::vector<int> ranks;
      for (std::size_t position = 0; position < parts.size(); ++position) {
        if (has(parts[position], block)) {
          ranks.push_back(tensor_.from.rank_at(static_cast<int>(position)));
        }
      }
      return Lines{rank_list(ranks)};
    });
  }

  Lines after() const {
    const std::vector<ElementRanges> from = parts_of(tensor_.from);
    const std::vector<ElementRanges> to = parts_of(tensor_.to);
    std::vector<ElementRanges> both = from;
    both.insert(both.end(), to.begin(), to.end());
    return grid("after", cuts(both),
                [&](const std::vector<Range>& block) { return arrivals(block); });
  }

 private:
  std::vector<ElementRanges> parts_of(const MeshLayout& layout) const {
    std::vector<ElementRanges> parts;
    for (int position = 0; position < layout.mesh.ranks(); ++position) {
      parts.push_back(parallel::elements_at(layout, tensor_.shape, position));
    }
    return parts;
  }

  std::vector<std::vector<Range>> cuts(const std::vector<ElementRanges>& parts) const {
    std::vector<std::vector<Range>> all;
    for (std::size_t dim = 0; dim < tensor_.shape.size(); ++dim) {
      all.push_back(cuts_of(parts, dim));
    }
    return all;
  }

  // "4,5<0": ranks 4 and 5 receive from rank 0. "0": it copies its own memory.
  Lines arrivals(const std::vector<Range>& block) const {
    std::map<int, std::set<int>> senders;  // by target
    for (const ReshardMove* move : moves_) {
      if (has(move->elements, block) && (!move->summand || move->to != move->from)) {
        senders[move->to].insert(move->from);
      }
    }
    std::map<std::vector<int>, std::vector<int>> targets;  // by senders
    std::vector<int> own;
    for (const auto& [target, from] : senders) {
      if (from == std::set<int>{target}) {
        own.push_back(target);
      } else {
        targets[{from.begin(), from.end()}].push_back(target);
      }
    }
    Lines lines;
    if (!own.empty()) {
      lines.push_back(rank_list(own));
    }
    for (const auto& [from, to] : targets) {
      lines.push_back(rank_list(to) + "<" + rank_list(from));
    }
    return lines;
  }

  template <typename Cell>
  Lines grid(const std::string& title, const std::vector<std::vector<Range>>& cuts,
             const Cell& cell) const {
    std::vector<std::size_t> cut;
    for (std::size_t dim = 0; dim < cuts.size(); ++dim) {
      if (cuts[dim].empty()) {
        return {};  // no elements
      }
      if (cuts[dim].size() > 1) {
        cut.push_back(dim);
      }
    }
    if (cut.size() > 2) {
      return {};
    }
    for (std::size_t dim = 0; dim < cuts.size() && cut.size() < 2; ++dim) {
      if (std::find(cut.begin(), cut.end(), dim) == cut.end()) {
        cut.push_back(dim);
      }
    }
    std::sort(cut.begin(), cut.end());
    const std::vector<Range> one = {{.first = 0, .count = 1}};
    const std::vector<Range>& rows = cut.empty() ? one : cuts[cut[0]];
    const std::vector<Range>& columns = cut.size() < 2 ? one : cuts[cut[1]];
    if (rows.size() > kMostRows || columns.size() > kMostRows) {
      return {};
    }
    Grid made;
    for (const Range& column : columns) {
      made.columns.push_back(cut.size() < 2 ? "" : range_text(column));
    }
    for (const Range& row : rows) {
      made.rows.push_back(range_text(row));
      made.cells.emplace_back();
      for (const Range& column : columns) {
        std::vector<Range> block;
        for (std::size_t dim = 0; dim < cuts.size(); ++dim) {
          block.push_back(dim == cut[0]                     ? row
                          : cut.size() > 1 && dim == cut[1] ? column
                                                            : cuts[dim].front());
        }
        made.cells.back().push_back(cell(block));
      }
    }
    return drawn(title, made);
  }

  const ReshardTensor& tensor_;
  std::vector<const ReshardMove*> moves_;
};

std::size_t width_of(const Lines& lines) {
  std::size_t width = 0;
  for (const std::string& line : lines) {
    width = std::max(width, line.size());
  }
  return width;
}

}  // namespace

std::string reshard_grids(const ReshardPlan& plan, std::size_t tensor, int width) {
  const Drawer drawer(plan, tensor);
  const Lines before = drawer.before();
  const Lines after = drawer.after();
  const auto most = static_cast<std::size_t>(width);
  const std::size_t left = width_of(before);
  const std::size_t right = width_of(after);
  if (before.empty() || after.empty() || left > most || right > most) {
    return {};
  }
  std::string text;
  if (left + kGap + right > most) {
    for (const Lines* lines : {&before, &after}) {
      for (const std::string& line : *lines) {
        text += line + "\n";
      }
    }
    return text;
  }
  for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    std::string line = i < before.size() ? before[i] : std::string();
    if (i < after.size()) {
      line = fmt::format("{:<{}}{}", line, left + kGap, after[i]);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace unisono::cli
