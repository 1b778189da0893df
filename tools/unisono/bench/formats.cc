#include "bench/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "base/dtypes.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr double kGood = 0.5;  // of the limit

std::string number(double value) {
  const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : 2;
  return fmt::format("{:.{}f}", value, digits);
}

// "none" for calls without reduction, as in nccl-tests.
std::string op_text(const Row& row) {
  const bool combines =
      !row.what.workload.send_recv && reduces(plain_form(row.what.workload.collective));
  return combines ? std::string(to_string(row.what.op)) : "none";
}

int root_of(const Row& row) {
  return !row.what.workload.send_recv && is_rooted(row.what.workload.collective) ? row.what.root
                                                                                 : -1;
}

// Ranks that share no memory may still all be on one host.
std::string place_text(const Heading& heading) {
  return heading.hosts == 1               ? "on 1 host"
         : heading.hosts == heading.ranks ? "over the network"
                                          : fmt::format("on {} hosts", heading.hosts);
}

std::string columns(const Heading& heading, const Console& console) {
  const std::string collective = fmt::format("{:<16}", "collective");
  const std::string names = fmt::format(
      "#{} {:>10}  {:>10}  {:>7} {:>6} {:>4}  {:<18} {:>5}  {:>9}  {:>9}  {:>6}  {:>6}  {:>9}  "
      "{:>5}  {:>5}",
      heading.several ? collective : "", "size", "count", "type", "redop", "root", "algorithm",
      "place", "time", "p99", "algbw", "busbw", "limit", "of", "wrong");
  const std::string units = fmt::format(
      "#{} {:>10}  {:>10}  {:>7} {:>6} {:>4}  {:<18} {:>5}  {:>9}  {:>9}  {:>6}  {:>6}  {:>9}  "
      "{:>5}\n",
      heading.several ? std::string(16, ' ') : "", "(B)", "(elems)", "", "", "", "", "", "(us)",
      "(us)", "(GB/s)", "(GB/s)", "(us)", "limit");
  return console.paint(Paint::strong, names) + "\n" + units;
}

std::string narrow_columns(const Heading& heading, const Console& console) {
  const auto line = [&](const auto& left, const auto&... rest) {
    return fmt::format("{} {:<18} {:>3} {:>7} {}{:>6} {:>5} {:>5}", left, rest...);
  };
  const auto left = [&](std::string_view collective, std::string_view size, std::string_view type) {
    return heading.several ? fmt::format("#{:<16} {:>8}", collective, size)
                           : fmt::format("#{:>8} {:>5}", size, type);
  };
  const auto alone = [&](std::string_view p99, std::string_view algbw) {
    return heading.several ? std::string() : fmt::format("{:>7} {:>6} ", p99, algbw);
  };
  return console.paint(Paint::strong, line(left("collective", "size", "type"), "algorithm", "at",
                                           "time", alone("p99", "algbw"), "busbw", "of", "wrong")) +
         "\n" +
         line(left("", "", ""), "", "", "(us)", alone("(us)", "(GB/s)"), "(GB/s)", "limit", "") +
         "\n";
}

std::string text_heading(const Heading& heading, const Console& console) {
  std::string text =
      fmt::format("# unisono {}  {} rank{} {}  {} core{}{}\n", UNISONO_VERSION, heading.ranks,
                  heading.ranks == 1 ? "" : "s", place_text(heading), heading.cpus,
                  heading.cpus == 1 ? "" : "s",
                  heading.ranks > heading.cpus ? ": ranks share cores, times are pessimistic" : "");
  text += fmt::format("# {} memory{}{}; time: median over batches of the slowest rank\n",
                      heading.registered ? "registered" : "ordinary",
                      heading.persistent ? ", persistent operations" : "",
                      heading.fresh ? ", fresh data before each call" : "");
  if (heading.hop_us > 0) {
    text += fmt::format(
        "# limit: a cache line between two cores takes {:.2f} us; all ranks copy at once\n",
        heading.hop_us);
  }
  if (heading.ranks == 1) {
    text += fmt::format(
        "# 1 rank: nothing is communicated, so there is no busbw; {}more ranks:\n"
        "#         {}\n",
        heading.iterations > 0 ? "-n is --iters; " : "", kMoreRanks);
  }
  return text + (heading.narrow ? narrow_columns(heading, console) : columns(heading, console));
}

std::string busbw_text(const Row& row) {
  return row.ranks == 1 ? "-" : fmt::format("{:.2f}", row.busbw());
}

std::string p99_text(const Row& row) {
  return row.timing.has_p99() ? number(row.timing.p99_us) : "-";
}

std::string of_text(const Row& row, const Console& console) {
  const double share = row.limit_us > 0 ? row.limit_us / row.timing.time_us : 0;
  const std::string of = row.limit_us > 0 ? fmt::format("{:.0f} %", share * 100) : "-";
  return console.paint(share >= kGood ? Paint::good : Paint::plain, fmt::format("{:>5}", of));
}

std::string wrong_text(const Row& row, const Console& console) {
  const std::string wrong = fmt::format("{:>5}", row.wrong);
  return row.wrong == 0 ? wrong : console.paint(Paint::bad, wrong);
}

std::string narrow_row(const Row& row, const Heading& heading, const Console& console) {
  const std::string left =
      heading.several
          ? fmt::format(" {:<16} {:>8}", row.what.workload.name(), format_bytes(row.bytes))
          : fmt::format(" {:>8} {:>5}", format_bytes(row.bytes), to_string(row.what.dtype));
  const std::string alone =
      heading.several ? "" : fmt::format("{:>7} {:>6.2f} ", p99_text(row), row.algbw());
  return fmt::format("{} {:<18} {:>3} {:>7} {}{:>6} {} {}\n", left, row.algorithm,
                     row.what.in_place ? "in" : "out", number(row.timing.time_us), alone,
                     busbw_text(row), of_text(row, console), wrong_text(row, console));
}

std::string text_row(const Row& row, const Heading& heading, const Console& console) {
  if (heading.narrow) {
    return narrow_row(row, heading, console);
  }
  return fmt::format(
             " {} {:>10}  {:>10}  {:>7} {:>6} {:>4}  {:<18} {:>5}  {:>9}  {:>9}  {:>6.2f}  "
             "{:>6}  {:>9}  {}  {}{}",
             heading.several ? fmt::format("{:<16}", row.what.workload.name()) : "", row.bytes,
             row.count, to_string(row.what.dtype), op_text(row), root_of(row), row.algorithm,
             row.what.in_place ? "in" : "out", number(row.timing.time_us), p99_text(row),
             row.algbw(), busbw_text(row), row.limit_us > 0 ? number(row.limit_us) : "-",
             of_text(row, console), wrong_text(row, console),
             console.verbose() ? fmt::format("  {} calls, {}", row.timing.iterations, row.bound)
                               : "") +
         "\n";
}

// Returns that tool's column headings exactly.
std::string nccl_heading() {
  return fmt::format(
      "#\n#{:>43}{:>36}{:>36}\n"
      "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  {:>6}  {:>6} {:>6}\n"
      "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  {:>6}  {:>6} "
      "{:>6}\n",
      "", "out-of-place", "in-place", "size", "count", "type", "redop", "root", "time", "algbw",
      "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "(B)", "(elements)", "", "", "",
      "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string nccl_half(const Row* row) {
  if (row == nullptr) {
    return fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", "N/A", "N/A", "N/A", "N/A");
  }
  return fmt::format("  {:>7}  {:>6.2f}  {:>6.2f} {:>6}", number(row->timing.time_us), row->algbw(),
                     row->busbw(), row->wrong);
}

std::string nccl_row(const Row& row, const Row* second) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.count,
                     traits_of(row.what.dtype).nccl, op_text(row), root_of(row)) +
         nccl_half(&row) + nccl_half(second) + "\n";
}

std::string csv_row(const Row& row) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.4f},{:.4f},{:.3f},{}\n",
                     row.what.workload.name(), row.algorithm, row.ranks, row.bytes, row.count,
                     to_string(row.what.dtype), op_text(row), root_of(row),
                     row.what.in_place ? 1 : 0, row.timing.time_us, row.timing.p99_us, row.algbw(),
                     row.busbw(), row.limit_us, row.wrong);
}

std::string json_row(const Row& row) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.bench/1";
  json["collective"] = row.what.workload.name();
  json["algorithm"] = row.algorithm;
  json["ranks"] = row.ranks;
  json["bytes"] = row.bytes;
  json["count"] = row.count;
  json["dtype"] = to_string(row.what.dtype);
  json["op"] = op_text(row);
  json["root"] = root_of(row);
  json["in_place"] = row.what.in_place;
  json["time_us"] = row.timing.time_us;
  json["p99_us"] = row.timing.p99_us;
  json["algbw_gb_per_s"] = row.algbw();
  json["busbw_gb_per_s"] = row.busbw();
  json["limit_us"] = row.limit_us;
  json["wrong"] = row.wrong;
  return json.dump() + "\n";
}

}  // namespace

double Row::algbw() const {
  return timing.time_us <= 0 ? 0 : static_cast<double>(bytes) / timing.time_us * 1e-3;
}

double Row::busbw() const {
  return algbw() * bus_factor(what.workload, ranks);
}

std::string heading_text(Format format, const Heading& heading, const Console& console) {
  switch (format) {
    case Format::text:
      return text_heading(heading, console);
    case Format::nccl_tests:
      return nccl_heading();
    case Format::csv:
      return "collective,algorithm,ranks,bytes,count,dtype,op,root,in_place,time_us,p99_us,"
             "algbw_gb_per_s,busbw_gb_per_s,limit_us,wrong\n";
    case Format::jsonl:
      return {};
  }
  return {};
}

std::string row_text(Format format, const Row& first, const Row* second, const Heading& heading,
                     const Console& console) {
  if (format == Format::nccl_tests) {
    return nccl_row(first, second);
  }
  std::string text;
  for (const Row* row : {&first, second}) {
    if (row != nullptr) {
      text += format == Format::text  ? text_row(*row, heading, console)
              : format == Format::csv ? csv_row(*row)
                                      : json_row(*row);
    }
  }
  return text;
}

std::string footer_text(Format format, const std::vector<Row>& rows, const Console& console) {
  if (format == Format::csv || format == Format::jsonl) {
    return {};
  }
  std::uint64_t wrong = 0;
  const Row* slowest = nullptr;  // the row farthest from its limit
  for (const Row& row : rows) {
    wrong += row.wrong;
    if (row.limit_us > 0 && row.limit_us < kGood * row.timing.time_us) {
      if (slowest == nullptr ||
          row.limit_us / row.timing.time_us < slowest->limit_us / slowest->timing.time_us) {
        slowest = &row;
      }
    }
  }
  if (format == Format::nccl_tests) {
    return fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  }
  if (slowest == nullptr || console.quiet()) {
    return {};
  }
  return fmt::format("# farthest from its limit: {} {} {}{}, {:.0f} % of it\n",
                     slowest->what.workload.name(), slowest->algorithm,
                     format_bytes(slowest->bytes), slowest->what.in_place ? " in place" : "",
                     100 * slowest->limit_us / slowest->timing.time_us);
}

}  // namespace unisono::cli
