#include "tune/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "base/bytes_text.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "cli/text_file.h"
#include "network_model/table.h"
#include "tune/measure_threads.h"
#include "tune/measure_waits.h"
#include "unisono/options.hpp"

namespace unisono::cli {
namespace {

constexpr std::string_view kHeading =
    "collective,algorithm,ranks,bytes,time_us,wait,oversubscribed,threads\n";
// The share of a job's time for wait policies.
constexpr double kWaitsShare = 0.05;

// Returns the texts between the commas, which may be empty.
std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  for (std::size_t first = 0; first <= list.size();) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    words.push_back(list.substr(first, comma - first));
    first = comma + 1;
  }
  return words;
}

}  // namespace

MeasureOptions measure_options(const Arguments& arguments) {
  MeasureOptions options{.most_bytes = arguments.bytes("max-bytes"),
                         .seconds = arguments.seconds("time")};
  if (!arguments.has("sizes")) {
    constexpr std::uint64_t kLeast = 8;
    if (options.most_bytes < kLeast) {
      throw UsageError(fmt::format("--max-bytes cannot be '{}'", arguments.text("max-bytes")),
                       "the smallest measured size is 8 B", "use --sizes for smaller sizes");
    }
    return options;
  }
  const std::string list = arguments.text("sizes");
  for (const std::string_view word : words_of(list)) {
    const auto bytes = parse_bytes(word);
    if (!bytes) {
      throw UsageError(fmt::format("--sizes cannot be '{}'", list), "sizes: 100,4K,1MiB");
    }
    options.sizes.push_back(*bytes);
  }
  std::sort(options.sizes.begin(), options.sizes.end());
  options.most_bytes = options.sizes.back();
  return options;
}

std::vector<int> thread_counts_of(const Arguments& arguments) {
  if (!arguments.has("threads")) {
    return {};
  }
  std::set<int> counts;
  const std::string text = arguments.text("threads");
  for (const std::string_view word : words_of(text)) {
    int threads = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), threads);
    const bool is_number = read.ec == std::errc() && read.ptr == word.data() + word.size();
    if (!is_number || threads < 1 || threads > kMostThreads) {
      throw UsageError(fmt::format("--threads cannot be '{}'", text),
                       fmt::format("give numbers from 1 to {}, such as 1,2,4", kMostThreads));
    }
    counts.insert(threads);
  }
  return {counts.begin(), counts.end()};
}

void measure_into_table(const Arguments& arguments) {
  const std::string path = arguments.text("measure");
  Communicator comm = Communicator::connect();
  GrowingFile file;
  if (comm.rank() == 0) {
    file = GrowingFile(path);
    file.add(kHeading);
  }
  MeasureOptions options = measure_options(arguments);
  if (const std::vector<int> counts = thread_counts_of(arguments); !counts.empty()) {
    measure_threads(
        comm, counts, options.most_bytes, options.seconds,
        [&](const network_model::TimedThreads& one) {
          file.add(fmt::format("{},,{},{:.0f},{:.4f},,,{}\n", to_string(one.of.collective),
                               one.of.ranks, one.of.from_bytes, one.time_s * 1e6, one.of.threads));
        });
    return;
  }
  if (comm.size() > 1) {
    measure_waits(comm, options.seconds * kWaitsShare, [&](const network_model::TimedWait& one) {
      file.add(fmt::format("all_reduce,,{},{:.0f},{:.4f},\"{}\",{},\n", one.wait.ranks, one.bytes,
                           one.time_s * 1e6, to_text(one.wait.policy),
                           one.wait.oversubscribed ? 1 : 0));
    });
  }
  options.seconds *= 1 - kWaitsShare;
  measure_algorithms(comm, options, [&](const cost::Point& point) {
    file.add(fmt::format("{},{},{},{:.0f},{:.4f},,,\n", to_string(point.collective),
                         point.algorithm, point.ranks, point.bytes, point.time_s * 1e6));
  });
}

void add_measurements(const std::string& path, Measurements& all) {
  const std::string text = read_text_file(path);
  auto parsed = network_model::parse_table(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     {}, "unisono help plan describes the columns of a table");
  }
  if (const std::vector<std::string> machines = parsed.value->machines(); machines.size() > 1) {
    parsed.value->account.assume(
        fmt::format("the rows of {} machines belong to one machine", machines.size()));
  }
  all.accounts.push_back(parsed.value->account);
  const bool is_next = !all.table.empty() && text.starts_with(kHeading);
  all.table += is_next ? text.substr(kHeading.size()) : text;
  for (const network_model::Table::Row& row : parsed.value->rows) {
    if (row.threads != 0) {
      all.threads.push_back({.of = {.collective = row.point.collective,
                                    .ranks = row.point.ranks,
                                    .from_bytes = row.point.bytes,
                                    .threads = row.threads},
                             .time_s = row.point.time_s});
      continue;
    }
    if (row.wait.empty()) {
      all.points.push_back(row.point);
      continue;
    }
    all.waits.push_back({.wait = {.ranks = row.point.ranks,
                                  .oversubscribed = row.oversubscribed,
                                  .policy = parse_wait_policy(row.wait, {})},
                         .bytes = row.point.bytes,
                         .time_s = row.point.time_s});
  }
}

}  // namespace unisono::cli
