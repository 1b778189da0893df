#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace unisono::cli {
namespace {

constexpr int kGap = 2;

std::string padded(std::string_view text, int width, bool left) {
  const std::string space(static_cast<std::size_t>(std::max(width - display_width(text), 0)), ' ');
  return left ? std::string(text) + space : space + std::string(text);
}

}  // namespace

void TextTable::add(std::vector<std::string> cells, Paint paint) {
  rows_.push_back({.cells = std::move(cells), .paint = paint});
}

std::string TextTable::text(const Console& console) const {
  std::vector<int> widths;
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), 0);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(display_width(columns_[i].heading));
    for (const Row& row : rows_) {
      widths.back() = std::max(widths.back(), display_width(row.cells[i]));
    }
  }
  const auto fits = [&](int gap) {
    int total = -gap;
    for (const std::size_t i : shown) {
      total += widths[i] + gap;
    }
    return total <= console.width();
  };
  const int gap = fits(kGap) ? kGap : 1;
  while (!fits(gap)) {
    const auto spare = std::max_element(
        shown.begin(), shown.end(),
        [this](std::size_t a, std::size_t b) { return columns_[a].spare < columns_[b].spare; });
    if (columns_[*spare].spare == 0) {
      break;
    }
    shown.erase(spare);
  }
  const auto line = [&](const std::vector<std::string>& cells, Paint paint) {
    std::string text;
    for (const std::size_t i : shown) {
      const bool last = i == shown.back();
      text +=
          text.empty() && i == shown.front() ? "" : std::string(static_cast<std::size_t>(gap), ' ');
      const std::string cell =
          padded(cells[i], last && columns_[i].left ? 0 : widths[i], columns_[i].left);
      text += last && !cells.back().empty() ? console.paint(paint, cell) : cell;
    }
    text.resize(text.find_last_not_of(' ') + 1);
    return (cells.back().empty() ? console.paint(paint, text) : text) + "\n";
  };
  std::vector<std::string> headings;
  for (const Column& column : columns_) {
    headings.push_back(column.heading);
  }
  std::string result = line(headings, Paint::plain);
  result.pop_back();
  result = console.paint(Paint::strong, result) + "\n";
  for (const Row& row : rows_) {
    result += line(row.cells, row.paint);
  }
  return result;
}

}  // namespace unisono::cli
