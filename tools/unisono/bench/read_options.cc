#include "bench/read_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/target.h"
#include "kernels/kernels.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    words.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return words;
}

// Parses a list of enumeration words; "all" stands for every word.
template <typename T, typename Parse>
std::vector<T> read_words(const Arguments& arguments, std::string_view option, int all,
                          Parse parse) {
  std::vector<std::string_view> names;
  for (int i = 0; i < all; ++i) {
    names.push_back(to_string(static_cast<T>(i)));
  }
  std::vector<T> result;
  for (const std::string& word : split(arguments.text(option))) {
    if (word == "all") {
      for (int i = 0; i < all; ++i) {
        result.push_back(static_cast<T>(i));
      }
    } else if (const std::optional<T> value = parse(word)) {
      result.push_back(*value);
    } else {
      const std::string hint = did_you_mean(word, names);
      throw UsageError(fmt::format("--{} cannot be '{}'", option, word),
                       hint.empty() ? fmt::format("one of: {}", fmt::join(names, ", ")) : hint,
                       "unisono help bench");
    }
  }
  return result;
}

// The requested operation: all_reduce, or all_reduce/ring as in show, verify and view.
struct Asked {
  std::string collectives;
  std::string algorithm;
};

Asked read_asked(const Arguments& arguments) {
  Asked asked{.collectives = arguments.operands().empty() ? "" : arguments.operands().front(),
              .algorithm = arguments.text("algorithm")};
  const std::size_t slash = asked.collectives.find('/');
  if (slash != std::string::npos) {
    if (arguments.has("algorithm")) {
      throw UsageError(fmt::format("{} names an algorithm, and so does --algorithm {}",
                                   asked.collectives, asked.algorithm),
                       {}, "remove one of the two");
    }
    algorithm_of(asked.collectives);  // refuses a wrong name, and lists the right ones
    asked.algorithm = asked.collectives.substr(slash + 1);
    asked.collectives.resize(slash);
  } else if (asked.algorithm.starts_with(asked.collectives + "/")) {
    asked.algorithm = asked.algorithm.substr(asked.collectives.size() + 1);
  }
  return asked;
}

std::vector<BenchWorkload> read_workloads(const std::string& text, int ranks) {
  if (text.empty()) {
    throw UsageError("which collective?", "unisono bench all_reduce, or unisono bench all",
                     "unisono help bench");
  }
  std::vector<BenchWorkload> workloads;
  for (const std::string& word : split(text)) {
    if (word == "all") {
      return all_workloads(ranks);
    }
    if (word == "send_recv") {
      if (ranks < 2) {
        throw UsageError("send_recv needs two ranks",
                         "unisono run -n 2 -- unisono bench send_recv");
      }
      workloads.push_back({.send_recv = true, .collective = Collective::barrier});
    } else {
      workloads.push_back({.send_recv = false, .collective = collective_of(word)});
    }
  }
  return workloads;
}

std::vector<std::uint64_t> read_sizes(const Arguments& arguments) {
  const std::uint64_t first = arguments.bytes("min-bytes");
  const std::uint64_t last = arguments.bytes("max-bytes");
  if (last < first) {
    throw UsageError("--max-bytes is below --min-bytes", {}, "unisono help bench");
  }
  std::vector<std::uint64_t> sizes;
  if (arguments.has("step-bytes")) {
    const std::uint64_t step = std::max<std::uint64_t>(1, arguments.bytes("step-bytes"));
    for (std::uint64_t size = first;; size += step) {
      sizes.push_back(size);
      if (last - size < step) {
        return sizes;
      }
    }
  }
  const auto factor = static_cast<std::uint64_t>(arguments.number("step-factor", 2, 1'000'000));
  for (std::uint64_t size = first;; size = size == 0 ? 1 : size * factor) {
    sizes.push_back(size);
    if (size == 0 ? last == 0 : size > last / factor) {
      return sizes;
    }
  }
}

std::vector<int> read_roots(const Arguments& arguments, int ranks) {
  if (arguments.text("root") != "all") {
    return {static_cast<int>(arguments.number("root", 0, ranks - 1))};
  }
  std::vector<int> roots;
  for (int root = 0; root < ranks; ++root) {
    roots.push_back(root);
  }
  return roots;
}

// Rejects calls that the library would only reject at the first call, after the heading.
void check_sweep(const SweepOptions& sweep) {
  bool combines = false;
  bool defined = false;
  for (const BenchWorkload& workload : sweep.workloads) {
    if (!sweep.algorithm.empty() && !sweep.algorithm.ends_with(".json") && !workload.send_recv) {
      algorithm_of(fmt::format("{}/{}", workload.name(), sweep.algorithm));
    }
    for (const Dtype dtype : sweep.dtypes) {
      for (const ReduceOp op : sweep.ops) {
        combines |= uses_op(workload);
        defined |= uses_op(workload) && is_defined(workload, dtype, op);
      }
    }
  }
  if (combines && !defined) {
    throw UsageError(fmt::format("{} of {} is not defined for {}", to_string(sweep.ops.front()),
                                 to_string(sweep.dtypes.front()),
                                 sweep.workloads.size() == 1 ? sweep.workloads.front().name()
                                                             : "any collective"),
                     {}, "unisono list --dtypes");
  }
}

}  // namespace

SweepOptions read_sweep(const Arguments& arguments, int ranks) {
  const std::string places = arguments.text("place");
  const Asked asked = read_asked(arguments);
  SweepOptions sweep{
      .workloads = read_workloads(asked.collectives, ranks),
      .dtypes = read_words<Dtype>(arguments, "dtype", kDtypeCount, parse_dtype),
      .ops = read_words<ReduceOp>(arguments, "op", kReduceOpCount - 1, parse_reduce_op),
      .roots = read_roots(arguments, ranks),
      .sizes = read_sizes(arguments),
      .algorithm = asked.algorithm,
      .out_of_place = places != "in",
      .in_place = places != "out"};
  check_sweep(sweep);
  return sweep;
}

Format read_format(const Arguments& arguments, const Console& console) {
  const std::string text = arguments.text("format");
  if (console.json() && arguments.has("format") && text != "jsonl") {
    throw UsageError(fmt::format("--json cannot be used with --format {}", text),
                     "--json means --format jsonl", "remove one of the two");
  }
  if (console.json() || text == "jsonl") {
    return Format::jsonl;
  }
  return text == "csv" ? Format::csv : text == "nccl-tests" ? Format::nccl_tests : Format::text;
}

}  // namespace unisono::cli
