#include "network_model/logs/benchmark_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "network_model/logs/log_format.h"

namespace unisono::network_model {
namespace {

using Formats = std::vector<std::unique_ptr<LogFormat>>;

Formats all_formats() {
  Formats formats;
  formats.push_back(nccl_tests_format());
  formats.push_back(osu_format());
  formats.push_back(ucc_format());
  formats.push_back(intel_format());
  return formats;
}

std::size_t heading_at(const Formats& formats, std::string_view line) {
  std::size_t first = std::string_view::npos;
  for (const auto& format : formats) {
    first = std::min(first, format->heading_at(line));
  }
  return first;
}

// The lines of one process. The latest heading determines the format of a line.
struct Stream {
  // Returns how many rows the line added.
  std::size_t read(const LogLine& line) {
    for (std::size_t i = 0; i < formats.size(); ++i) {
      formats[i]->see(line.text);
      current = formats[i]->heading_at(line.text) != std::string_view::npos ? i : current;
    }
    const std::size_t before = formats[current]->rows();
    formats[current]->read(line);
    return formats[current]->rows() - before;
  }

  Formats formats = all_formats();
  std::size_t current = 0;
};

}  // namespace

PrintedTable& LogFormat::begin(std::string test, std::size_t line) {
  PrintedTable& table = tables_.emplace_back();
  table.collective = collective_named_by_benchmark(test);
  table.test = std::move(test);
  table.line = line;
  return table;
}

std::optional<Collective> collective_named_by_benchmark(std::string_view name) {
  struct Known {
    std::string_view name;
    Collective collective;
  };
  constexpr std::array<Known, 13> kKnown = {
      {{"allreduce", Collective::all_reduce},
       {"allgather", Collective::all_gather},
       {"allgatherv", Collective::all_gather},
       {"reducescatter", Collective::reduce_scatter},
       {"reducescatterblock", Collective::reduce_scatter},
       {"alltoall", Collective::all_to_all},
       {"alltoallpersonalizedexchange", Collective::all_to_all},
       {"broadcast", Collective::broadcast},
       {"bcast", Collective::broadcast},
       {"reduce", Collective::reduce},
       {"gather", Collective::gather},
       {"scatter", Collective::scatter},
       {"barrier", Collective::barrier}}};
  std::string letters;
  name = name.substr(0, std::min(name.find("_test"), name.find("_perf")));
  for (const char sign : name) {
    if (sign != '_' && sign != '-' && sign != ' ') {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(sign)));
    }
  }
  const auto* const found = std::ranges::find(kKnown, letters, &Known::name);
  return found == kKnown.end() ? std::nullopt : std::optional(found->collective);
}

bool is_benchmark_log(std::string_view text) {
  if (is_nccl_tests_json(text)) {
    return true;
  }
  const Formats formats = all_formats();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (heading_at(formats, text.substr(0, end)) != std::string_view::npos) {
      return true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

Parsed<BenchmarkLog> parse_benchmark_log(std::string_view text, const LogQuestion& question) {
  const std::string plain = text.find('\x1b') == kNoPlace ? "" : without_escapes(text);
  text = plain.empty() ? text : plain;
  if (is_nccl_tests_json(text)) {
    Parsed<std::vector<PrintedTable>> tables = read_nccl_tests_json(text);
    return tables ? points_of("nccl-tests", *tables.value, question)
                  : Parsed<BenchmarkLog>::failure(tables.message, tables.position);
  }
  const Formats formats = all_formats();
  constexpr std::size_t kMostStreams = 10'000;
  std::map<std::string, Stream> streams;  // by line prefix
  std::size_t rows = 0;
  std::size_t number = 0;
  for_each_log_line(
      text, [&formats](std::string_view line) { return heading_at(formats, line); },
      [&](const LogLine& line) {
        number = line.number;
        rows += streams[line.source].read(line);
        return rows <= kMostRows && streams.size() <= kMostStreams;
      });
  if (rows > kMostRows || streams.size() > kMostStreams) {
    return Parsed<BenchmarkLog>::failure(
        rows > kMostRows ? "more than " + std::to_string(kMostRows) + " rows"
                         : "lines of more than " + std::to_string(kMostStreams) + " processes",
        "line " + std::to_string(number));
  }
  std::vector<PrintedTable> tables;
  std::string source;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const std::size_t before = tables.size();
    for (auto& [label, stream] : streams) {
      for (PrintedTable& table : stream.formats[i]->take()) {
        tables.push_back(std::move(table));
      }
    }
    source += tables.size() == before
                  ? ""
                  : (source.empty() ? "" : ", ") + std::string(formats[i]->name());
  }
  std::ranges::sort(tables, {}, &PrintedTable::line);
  return points_of(source, tables, question);
}

}  // namespace unisono::network_model
