// Tables for a terminal of any width from 80 columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace unisono::cli {

// A table with one row per add(). Columns are two spaces apart, or one if the table is too wide. If
// it is still too wide, columns with a `spare` are left out, the highest `spare` first.
class TextTable {
 public:
  struct Column {
    std::string heading;
    bool left = false;  // left-aligned; numbers are right-aligned
    int spare = 0;      // 0: never left out
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row with one cell per column; `paint` colours the last cell, or the whole row if that
  // cell is empty.
  void add(std::vector<std::string> cells, Paint paint = Paint::plain);
  std::string text(const Console& console) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Paint paint;
  };

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace unisono::cli
