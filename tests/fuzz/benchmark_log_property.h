// The property of any bytes given to the reader of benchmark output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "network_model/logs/benchmark_log.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string benchmark_log_property(std::string_view text) {
  if (!network_model::is_benchmark_log(text)) {
    return "";
  }
  const Parsed<network_model::BenchmarkLog> log =
      network_model::parse_benchmark_log(text, {.collective = Collective::all_reduce, .ranks = 4});
  if (!log) {
    return log.message.empty() || log.position.empty() ? "refused without message or position" : "";
  }
  const auto rows = static_cast<std::int64_t>(log.value->table.rows.size());
  if (rows == 0 || log.value->account.used != rows) {
    return "the account has another number of rows";
  }
  for (const network_model::Table::Row& row : log.value->table.rows) {
    const cost::Point& point = row.point;
    if (point.ranks < 2 || !(point.bytes > 0) || point.bytes > cost::kMostPointBytes ||
        !(point.time_s > 0)) {
      return "a row that cannot be fitted";
    }
  }
  return "";
}

}  // namespace unisono::fuzz
