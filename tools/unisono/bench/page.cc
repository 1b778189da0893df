#include "bench/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes_text.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr std::array<std::uint64_t, 3> kSizes = {8, std::uint64_t{64} << 10U,
                                                 std::uint64_t{16} << 20U};
constexpr double kNoticedCores = 0.2;
constexpr std::size_t kBarWidth = 6;
constexpr std::size_t kAlgorithmWidth = 16;

std::string time_text(double us) {
  const bool long_call = us >= 999.5;
  const double value = long_call ? us / 1000 : us;
  return fmt::format("{:.{}f} {}", value,
                     value >= 99.5   ? 0
                     : value >= 9.95 ? 1
                                     : 2,
                     long_call ? "ms" : "us");
}

double share_of(const Row& row) {
  return row.limit_us > 0 ? std::min(1.0, row.limit_us / row.timing.time_us) : 0;
}

// "███▌  ", or "####  " if the terminal cannot show blocks.
std::string bar(double share, bool unicode) {
  static constexpr std::array<const char*, 8> kParts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(share * 8 * kBarWidth));
  const std::size_t full = unicode ? eighths / 8 : (eighths + 4) / 8;
  const bool part = unicode && eighths % 8 != 0;
  std::string text;
  for (std::size_t i = 0; i < full; ++i) {
    text += unicode ? "█" : "#";
  }
  text += part ? kParts[eighths % 8] : "";
  return text + std::string(kBarWidth - full - (part ? 1 : 0), ' ');
}

// Returns the row for the page: out of place, f32, with the library's choice of algorithm. nullptr:
// there is none.
const Row* find_row(const std::vector<Row>& rows, std::string_view name, std::uint64_t bytes) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.what.workload.name() == name && row.what.bytes == bytes &&
           row.what.algorithm.empty() && !row.what.in_place && row.what.dtype == Dtype::f32;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string cell(const Row* row) {
  if (row == nullptr) {
    return std::string(14, ' ');
  }
  const std::string share =
      row->limit_us > 0 ? fmt::format("{:.0f}%", std::floor(share_of(*row) * 100)) : "";
  return fmt::format(" {:>8} {:>4}", time_text(row->timing.time_us), share);
}

std::string collective_line(const std::vector<Row>& rows, const Row& first, bool unicode) {
  const std::string_view name = first.what.workload.name();
  std::string text = fmt::format("{:<14}", name);
  const Row* last = &first;
  for (const std::uint64_t bytes : kSizes) {
    // A barrier has no size: its only row stands first.
    const Row* row = find_row(rows, name, bytes);
    row = row == nullptr && bytes == kSizes.front() ? &first : row;
    text += cell(row);
    last = row == nullptr ? last : row;
  }
  std::string algorithm = last->algorithm == "-" ? "" : last->algorithm;
  algorithm.resize(std::min(algorithm.size(), kAlgorithmWidth));
  text += fmt::format(" {} {}", bar(share_of(*last), unicode), algorithm);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

bool is_v(const Row& row) {
  return !row.what.workload.send_recv && is_v_form(row.what.workload.collective);
}

// Lists each collective once; the v-forms share the algorithms of their plain forms.
std::string collective_lines(const std::vector<Row>& rows, bool unicode) {
  std::string text;
  std::vector<std::string_view> seen;
  for (const Row& row : rows) {
    const std::string_view name = row.what.workload.name();
    if (!is_v(row) && std::find(seen.begin(), seen.end(), name) == seen.end()) {
      seen.push_back(name);
      text += collective_line(rows, row, unicode);
    }
  }
  return text;
}

std::string heading(const PageFacts& facts, const Console& console) {
  const std::string cache = facts.cache_bytes > 0 ? fmt::format(", {} of last-level cache",
                                                                format_bytes(facts.cache_bytes))
                                                  : "";
  std::string machine = fmt::format("{}{} core{}{}", facts.cpu.empty() ? "" : facts.cpu + ", ",
                                    facts.cpus, facts.cpus == 1 ? "" : "s", cache);
  machine.resize(std::min<std::size_t>(machine.size(), 66));
  std::string text =
      fmt::format("{} {}\n", console.paint(Paint::strong, "unisono " UNISONO_VERSION), machine);
  text +=
      fmt::format("{} process{} {}", facts.ranks, facts.ranks == 1 ? "" : "es",
                  facts.hosts == 1 ? "that share memory" : fmt::format("on {} hosts", facts.hosts));
  if (facts.hosts == 1 && facts.ranks > facts.cpus) {
    text += ", more than there are cores: short calls are slow";
  }
  text += "\n";
  if (facts.others >= kNoticedCores) {
    text +=
        fmt::format("Others used {:.1f} of {} cores: times are too long; ignore the percentages\n",
                    facts.others, facts.cpus);
  }
  return text;
}

std::string table_heading(const Console& console) {
  std::string text = fmt::format("{:<14}", "");
  for (const std::uint64_t bytes : kSizes) {
    text += fmt::format(" {:>8} {:>4}", format_bytes(bytes), "");
  }
  return "Time of one f32 call, and the share of it that this machine needs at least:\n" +
         console.paint(Paint::strong, fmt::format("{} {:<6} algorithm", text, "")) + "\n";
}

std::string next_steps(const std::string& program) {
  return fmt::format(
      "Try next:\n"
      "  {0} learn  # how it works, in the terminal\n"
      "  {0} view  # plays every algorithm on a page\n",
      program);
}

}  // namespace

const Row* first_wrong(const std::vector<Row>& rows) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.wrong != 0; });
  return found == rows.end() ? nullptr : &*found;
}

std::string verdict_text(const std::vector<Row>& rows) {
  std::uint64_t checks = 0;
  std::uint64_t failed = 0;
  for (const Row& row : rows) {
    checks += row.checks;
    failed += row.failed;
  }
  return fmt::format("{} wrong of {} checks", failed, checks);
}

std::string page_text(const std::vector<Row>& rows, const PageFacts& facts,
                      const Console& console) {
  const Paint paint = first_wrong(rows) == nullptr ? Paint::good : Paint::bad;
  const std::string verdict = console.paint(paint, verdict_text(rows));
  if (console.quiet()) {
    return verdict + "\n";
  }
  std::string text = heading(facts, console) + table_heading(console) +
                     collective_lines(rows, facts.unicode) + "\n";
  text += fmt::format(
      "{} in {} cases: all collectives and algorithms, f32, bf16.\n"
      "Each element is compared with a plain loop that uses none of unisono's kernels.\n",
      verdict, rows.size());
  if (!facts.table.empty()) {
    text += fmt::format("All rows: {} (--all prints them)\n", facts.table);
  }
  return text + next_steps(facts.program);
}

}  // namespace unisono::cli
