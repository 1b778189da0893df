// Tables for a terminal of any width from 80 columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace unisono::cli {

// One row per add(). Columns are two spaces apart, or one where the table is too wide otherwise;
// then columns that may go are left out, the highest `spare` first.
class TextTable {
 public:
  struct Column {
    std::string heading;
    bool left = false;  // aligned; numbers stay on the right
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
