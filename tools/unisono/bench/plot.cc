// Time against bytes, both logarithmic, as an SVG that stands on its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/bytes_text.h"
#include "bench/formats.h"

namespace unisono::cli {
namespace {

constexpr double kPlotRight = 650;
constexpr double kLeastHeight = 520;
constexpr double kLeft = 78;
constexpr double kLegend = 60;  // beside the longest name
constexpr double kLetter = 6.7;
constexpr double kTop = 56;
constexpr double kBottom = 60;
constexpr double kRow = 20;  // of the legend
// The first eight are distinct also for the colour-blind (Okabe and Ito).
constexpr std::string_view kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                        "#56b4e9", "#000000", "#8c6d31", "#7b4173", "#bcbd22",
                                        "#843c39", "#17becf", "#637939", "#ff9896", "#393b79",
                                        "#aec7e8", "#b15928", "#98df8a", "#6a3d9a", "#999999"};

struct Point {
  double bytes;
  double us;
};

struct Series {
  std::string name;
  std::string base;  // the same in and out of place, which share a colour
  bool dashed = false;
  std::vector<Point> points;
};

struct Scale {
  double least;
  double most;
  double from;
  double to;
  double at(double value) const {
    return from +
           (std::log(value) - std::log(least)) / (std::log(most) - std::log(least)) * (to - from);
  }
};

std::string base_name(const Row& row, bool dtypes) {
  std::string name(row.what.workload.name());
  if (!row.what.algorithm.empty()) {
    name += "/" + row.what.algorithm;
  }
  if (dtypes) {
    name += fmt::format(" {}", to_string(row.what.dtype));
  }
  return name;
}

std::vector<Series> group(const std::vector<Row>& rows) {
  const bool dtypes = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.what.dtype != rows.front().what.dtype;
  });
  std::vector<Series> series;
  for (const Row& row : rows) {
    if (row.bytes == 0) {
      continue;
    }
    const std::string base = base_name(row, dtypes);
    const std::string name = row.what.in_place ? base + ", in place" : base;
    auto found =
        std::find_if(series.begin(), series.end(), [&](const Series& s) { return s.name == name; });
    if (found == series.end()) {
      series.push_back({.name = name, .base = base, .dashed = row.what.in_place, .points = {}});
      found = std::prev(series.end());
    }
    found->points.push_back({static_cast<double>(row.bytes), row.timing.time_us});
  }
  return series;
}

// Returns the limit of the first collective. The limits of the others differ only if fewer bytes
// arrive.
Series limit_of(const std::vector<Row>& rows) {
  Series limit{.name = "limit", .base = {}, .dashed = true, .points = {}};
  for (const Row& row : rows) {
    const bool first = row.what.workload.name() == rows.front().what.workload.name();
    const auto bytes = static_cast<double>(row.bytes);
    const bool known = std::any_of(limit.points.begin(), limit.points.end(),
                                   [&](const Point& p) { return p.bytes == bytes; });
    if (first && !known && row.limit_us > 0 && row.bytes > 0) {
      limit.points.push_back({bytes, row.limit_us});
    }
  }
  return limit;
}

std::string time_text(double us) {
  return us >= 1e6   ? fmt::format("{:g} s", us * 1e-6)
         : us >= 1e3 ? fmt::format("{:g} ms", us * 1e-3)
         : us >= 1   ? fmt::format("{:g} us", us)
                     : fmt::format("{:g} ns", us * 1e3);
}

std::string path_of(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  for (const Point& point : series.points) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x.at(point.bytes),
                        y.at(point.us));
  }
  return path;
}

std::string axes(const Scale& x, const Scale& y) {
  std::string text;
  const double bottom = y.from;
  const double octaves = std::log2(x.most / x.least);
  const int skip = octaves > 16 ? 4 : octaves > 8 ? 2 : 1;
  const int first = static_cast<int>(std::ceil(std::log2(x.least) - 1e-9));
  for (int power = first; std::exp2(power) <= x.most * 1.0001; power += skip) {
    const double at = x.at(std::exp2(power));
    text += fmt::format(
        "<path class='grid' d='M{0:.1f} {1} V{2}'/>"
        "<text x='{0:.1f}' y='{3}' text-anchor='middle'>{4}</text>\n",
        at, kTop, bottom, bottom + 18,
        format_bytes(std::uint64_t{1} << static_cast<unsigned>(power)));
  }
  for (double us = y.least; us <= y.most * 1.0001; us *= 10) {
    text += fmt::format(
        "<path class='grid' d='M{0} {1:.1f} H{2}'/>"
        "<text x='{3}' y='{4:.1f}' text-anchor='end'>{5}</text>\n",
        kLeft, y.at(us), kPlotRight, kLeft - 8, y.at(us) + 4, time_text(us));
  }
  return text;
}

std::string lines(const std::vector<Series>& series, const Scale& x, const Scale& y) {
  std::string text;
  std::vector<std::string_view> bases;  // by colour
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto known = std::find(bases.begin(), bases.end(), series[i].base);
    const auto color_index = static_cast<std::size_t>(known - bases.begin());
    if (known == bases.end()) {
      bases.push_back(series[i].base);
    }
    const bool is_limit = series[i].name == "limit";
    const std::string_view color =
        is_limit ? std::string_view("#777777") : kColors[color_index % std::size(kColors)];
    const std::string_view dash = is_limit ? "2 4" : series[i].dashed ? "7 4" : "none";
    text += fmt::format("<path class='line' d='{}' stroke='{}' stroke-dasharray='{}'/>\n",
                        path_of(series[i], x, y), color, dash);
    for (const Point& point : series[i].points) {
      if (!is_limit) {
        text += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.6' fill='{}'/>",
                            x.at(point.bytes), y.at(point.us), color);
      }
    }
    const double row = kTop + 10 + static_cast<double>(i) * kRow;
    text += fmt::format(
        "<path class='line' d='M{0} {1} h26' stroke='{2}' stroke-dasharray='{3}'/>"
        "<text x='{4}' y='{5}'>{6}</text>\n",
        kPlotRight + 14, row, color, dash, kPlotRight + 46, row + 4, series[i].name);
  }
  return text;
}

}  // namespace

std::string plot_svg(const std::vector<Row>& rows) {
  if (rows.empty()) {
    return {};
  }
  std::vector<Series> series = group(rows);
  const Series limit = limit_of(rows);
  if (!limit.points.empty()) {
    series.push_back(limit);
  }
  double least_bytes = 1e300;
  double most_bytes = 0;
  double least_us = 1e300;
  double most_us = 0;
  for (const Series& one : series) {
    for (const Point& point : one.points) {
      least_bytes = std::min(least_bytes, point.bytes);
      most_bytes = std::max(most_bytes, point.bytes);
      least_us = std::min(least_us, point.us);
      most_us = std::max(most_us, point.us);
    }
  }
  if (most_bytes <= 0) {
    return {};
  }
  // A single size is drawn in the middle.
  const double beside = most_bytes > least_bytes ? 1 : 2;
  const Scale x{least_bytes / beside, most_bytes * beside, kLeft, kPlotRight};
  const double height =
      std::max(kLeastHeight, kTop + kBottom + kRow * static_cast<double>(series.size()));
  const Scale y{std::pow(10, std::floor(std::log10(least_us))),
                std::pow(10, std::ceil(std::log10(most_us * 1.001))), height - kBottom, kTop};
  std::size_t longest = 0;
  for (const Series& one : series) {
    longest = std::max(longest, one.name.size());
  }
  const double width = kPlotRight + kLegend + kLetter * static_cast<double>(longest);
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}'>\n"
      "<style>text{{font:12px sans-serif;fill:#333}} .title{{font:600 15px sans-serif}}"
      " .grid{{stroke:#e4e4e4;fill:none}} .line{{fill:none;stroke-width:2}}</style>\n"
      "<rect width='{0}' height='{1}' fill='white'/>\n"
      "<text class='title' x='{2}' y='26'>{3}, {4} rank{5}</text>\n"
      "<text x='{2}' y='44'>median time of the slowest rank; lower is better</text>\n",
      width, height, kLeft,
      rows.front().what.workload.name() == rows.back().what.workload.name()
          ? rows.front().what.workload.name()
          : std::string_view("collectives"),
      rows.front().ranks, rows.front().ranks == 1 ? "" : "s");
  text += axes(x, y) + lines(series, x, y);
  text += fmt::format("<text x='{}' y='{}' text-anchor='middle'>size in bytes</text>\n</svg>\n",
                      (kLeft + kPlotRight) / 2, height - 16);
  return text;
}

}  // namespace unisono::cli
