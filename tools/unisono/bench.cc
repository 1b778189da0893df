// `unisono bench`: how fast the collectives are, and whether they are right.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "bench/formats.h"
#include "bench/runner.h"
#include "bench/sweep.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/target.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr std::uint64_t kMainJobMost = std::uint64_t{64} << 20U;

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

// A list of enumeration words; "all" gives every one.
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

std::vector<Workload> read_workloads(const Arguments& arguments, int ranks) {
  const std::string text = arguments.operands().empty() ? "" : arguments.operands().front();
  if (text.empty()) {
    throw UsageError("which collective?", "unisono bench all_reduce, or unisono bench all",
                     "unisono help bench");
  }
  std::vector<Workload> workloads;
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
    for (std::uint64_t size = first; size <= last; size += step) {
      sizes.push_back(size);
    }
    return sizes;
  }
  const auto factor = static_cast<std::uint64_t>(arguments.number("step-factor", 2, 1'000'000));
  for (std::uint64_t size = first; size <= last; size = size == 0 ? 1 : size * factor) {
    sizes.push_back(size);
  }
  return sizes;
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

SweepOptions read_sweep(const Arguments& arguments, int ranks) {
  const std::string places = arguments.text("place");
  return {.workloads = read_workloads(arguments, ranks),
          .dtypes = read_words<Dtype>(arguments, "dtype", kDtypeCount, parse_dtype),
          .ops = read_words<ReduceOp>(arguments, "op", kReduceOpCount - 1, parse_reduce_op),
          .roots = read_roots(arguments, ranks),
          .sizes = read_sizes(arguments),
          .algorithm = arguments.text("algorithm"),
          .out_of_place = places != "in",
          .in_place = places != "out"};
}

Format read_format(const Arguments& arguments, const Console& console) {
  const std::string text = arguments.text("format");
  if (console.json() || text == "jsonl") {
    return Format::jsonl;
  }
  return text == "csv" ? Format::csv : text == "nccl-tests" ? Format::nccl_tests : Format::text;
}

std::string case_text(const Case& row) {
  return fmt::format("{} {} {} {}{}", row.workload.name(), row.algorithm, to_string(row.dtype),
                     format_bytes(row.bytes), row.in_place ? " in place" : "");
}

int online_cpus() {
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// Runs the cases and prints them, on rank 0, as they come.
class Session {
 public:
  Session(Communicator& comm, const Arguments& arguments, const Console& console)
      : comm_(comm), arguments_(arguments), console_(console) {
    main_job_ = arguments.has("main-job");
    format_ = read_format(arguments, console);
    speaks_ = comm.rank() == 0;
  }

  int run() {
    if (main_job_ && !arguments_.operands().empty()) {
      throw UsageError("--main-job goes without a collective", {}, "unisono help bench");
    }
    const std::vector<Case> cases =
        main_job_ ? main_job_cases(comm_.size())
                  : sweep_cases(read_sweep(arguments_, comm_.size()), comm_.size());
    Runner runner(comm_, runner_options(cases));
    heading_ = {.ranks = comm_.size(),
                .cpus = online_cpus(),
                .hop_us = runner.hop_us(),
                .registered = arguments_.has("registered"),
                .persistent = arguments_.has("persistent"),
                .fresh = arguments_.has("fresh"),
                .several = several(cases)};
    say(heading_text(format_, heading_, console_));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (speaks_) {
        console_.progress(fmt::format("{}/{}  {}", i + 1, cases.size(), case_text(cases[i])));
      }
      rows_.push_back(runner.run(cases[i]));
      print_from(i, cases);
    }
    say(footer_text(format_, rows_, console_));
    write_plot();
    return verdict();
  }

 private:
  RunnerOptions runner_options(const std::vector<Case>& cases) const {
    RunnerOptions options{
        .timing = {.iterations = static_cast<int>(arguments_.number("iters", 0, 100'000'000)),
                   .warmup = static_cast<int>(arguments_.number("warmup", 0, 100'000'000)),
                   .target_s = main_job_ ? 0.02 : arguments_.seconds("time-per-row"),
                   .least_iterations = main_job_ ? 2 : 3,
                   .fresh = arguments_.has("fresh")},
        .registered = arguments_.has("registered"),
        .persistent = arguments_.has("persistent"),
        .random = arguments_.text("data") == "random",
        .most_bytes = main_job_ ? kMainJobMost : 0};
    for (const Case& row : cases) {
      options.most_bytes = std::max(options.most_bytes, row.bytes);
    }
    return options;
  }

  static bool several(const std::vector<Case>& cases) {
    return std::any_of(cases.begin(), cases.end(), [&](const Case& row) {
      return row.workload.name() != cases.front().workload.name();
    });
  }

  void say(const std::string& text) const {
    if (speaks_ && !text.empty()) {
      console_.end_progress();
      std::fputs(text.c_str(), stdout);
      std::fflush(stdout);
    }
  }

  // nccl-tests has one line for both places: the out-of-place row waits for the in-place one.
  void print_from(std::size_t i, const std::vector<Case>& cases) const {
    const bool pairs = format_ == Format::nccl_tests;
    const bool follows = i + 1 < cases.size() && cases[i + 1].in_place && !cases[i].in_place;
    if (pairs && follows) {
      return;
    }
    const bool second = pairs && i > 0 && cases[i].in_place && !cases[i - 1].in_place;
    say(second ? row_text(format_, rows_[i - 1], &rows_[i], heading_, console_)
               : row_text(format_, rows_[i], nullptr, heading_, console_));
  }

  void write_plot() const {
    const std::string path = arguments_.text("plot");
    if (path.empty() || !speaks_) {
      return;
    }
    std::ofstream file(path);
    file << plot_svg(rows_);
    file.close();
    if (!file) {
      throw UsageError(fmt::format("cannot write {}", path), {}, "unisono help bench");
    }
    console_.note(fmt::format("# plot: {}", path));
  }

  // Only rank 0 speaks, and its exit code is the answer.
  int verdict() const {
    std::uint64_t wrong = 0;
    for (const Row& row : rows_) {
      wrong += row.wrong;
    }
    if (main_job_ && format_ == Format::text) {
      say(fmt::format("{} wrong\n", wrong));
    } else if (main_job_ && format_ == Format::jsonl) {
      say(fmt::format("{{\"schema\":\"unisono.bench_end/1\",\"rows\":{},\"wrong\":{}}}\n",
                      rows_.size(), wrong));
    }
    if (!speaks_) {
      return kDone;
    }
    if (wrong != 0) {
      print_error(console_, "wrong", fmt::format("{} elements differ from the reference", wrong),
                  {}, "--algorithm NAME says whether one algorithm is to blame");
      return kAnswerIsNo;
    }
    return too_slow() ? kTooSlow : kDone;
  }

  bool too_slow() const {
    const double least = arguments_.has("min-busbw") ? arguments_.real("min-busbw") : 0;
    const double most_us = arguments_.has("max-time") ? arguments_.seconds("max-time") * 1e6 : 0;
    std::string detail;
    for (const Row& row : rows_) {
      if (row.bytes > 0 && row.busbw() < least) {
        detail += fmt::format("{}: busbw {:.2f} GB/s, asked for {:g}\n", case_text(row.what),
                              row.busbw(), least);
      }
      if (most_us > 0 && row.timing.time_us > most_us) {
        detail += fmt::format("{}: {:.1f} us, asked for {:g}\n", case_text(row.what),
                              row.timing.time_us, most_us);
      }
    }
    if (detail.empty()) {
      return false;
    }
    print_error(console_, "too_slow", "slower than asked", detail, "unisono doctor");
    return true;
  }

  Communicator& comm_;
  const Arguments& arguments_;
  const Console& console_;
  bool main_job_ = false;
  bool speaks_ = false;
  Format format_ = Format::text;
  Heading heading_;
  std::vector<Row> rows_;
};

int run_bench(const Arguments& arguments, const Console& console) {
  Communicator comm = Communicator::connect();
  return Session(comm, arguments, console).run();
}

constexpr Option kOptions[] = {
    {.name = "min-bytes",
     .letter = 'b',
     .value = "SIZE",
     .help = "Smallest size.",
     .fallback = "8"},
    {.name = "max-bytes",
     .letter = 'e',
     .value = "SIZE",
     .help = "Largest size.",
     .fallback = "64M"},
    {.name = "step-factor",
     .letter = 'f',
     .value = "N",
     .help = "From one size to the next.",
     .fallback = "2"},
    {.name = "step-bytes", .letter = 'i', .value = "SIZE", .help = "Add this instead."},
    {.name = "dtype",
     .letter = 'd',
     .value = "TYPES",
     .help = "Data types, or all: f32,bf16.",
     .fallback = "f32"},
    {.name = "op",
     .letter = 'o',
     .value = "OPS",
     .help = "Reduce operations, or all: sum,max.",
     .fallback = "sum"},
    {.name = "root", .letter = 'r', .value = "RANK", .help = "The root, or all.", .fallback = "0"},
    {.name = "algorithm", .value = "NAME", .help = "Force one algorithm (unisono list)."},
    {.name = "place",
     .value = "WHERE",
     .help = "Out of place, in place, or both.",
     .fallback = "both",
     .choices = "out|in|both"},
    {.name = "iters",
     .letter = 'n',
     .value = "N",
     .help = "Timed calls a row; 0: as many as fit in --time-per-row.",
     .fallback = "0"},
    {.name = "warmup",
     .letter = 'w',
     .value = "N",
     .help = "Calls before timing; 0: chosen by size.",
     .fallback = "0"},
    {.name = "time-per-row",
     .value = "TIME",
     .help = "How long to time each row.",
     .fallback = "200ms"},
    {.name = "fresh",
     .help = "Each rank rewrites its input and reads its output before each call, untimed: small "
             "buffers that are used again and again flatter."},
    {.name = "registered", .help = "Buffers that the other ranks can read directly."},
    {.name = "persistent", .help = "Persistent operations: arguments checked once."},
    {.name = "data",
     .value = "KIND",
     .help = "exact: small integers, one wrong bit shows; random: reals, within an error bound.",
     .fallback = "exact",
     .choices = "exact|random"},
    {.name = "format",
     .value = "FORM",
     .help = "nccl-tests gives that tool's exact columns.",
     .fallback = "text",
     .choices = "text|nccl-tests|csv|jsonl"},
    {.name = "plot", .value = "FILE.svg", .help = "Draw time against bytes, with the limit."},
    {.name = "min-busbw", .value = "GB/S", .help = "Exit with 5 if a row is below."},
    {.name = "max-time", .value = "TIME", .help = "Exit with 5 if a row takes longer."},
    {.name = "main-job",
     .help = "Every collective and each of its algorithms on f32 and bf16 from 8 B to 64 MiB; "
             "ends with the number of wrong elements."}};

}  // namespace

const Command kBenchCommand = {
    .name = "bench",
    .summary = "measure collectives and check every result",
    .operands = "COLLECTIVE[,COLLECTIVE...] | send_recv | all",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono run -n 4 -- unisono bench all_reduce -b 1K -e 64M",
                   "all_reduce on four ranks, 1 KiB to 64 MiB."},
                  {"unisono run -n 2 -- unisono bench all_gather -d bf16 --plot gather.svg",
                   "bf16, with a drawing."},
                  {"unisono run -n 4 -- unisono bench all_reduce -b 64M --format nccl-tests",
                   "The columns that parsers of nccl-tests expect."}}},
    .description =
        "Sizes and bandwidths are those of nccl-tests: size is the larger of what a rank sends and "
        "receives in all, algbw = size / time, busbw = algbw x 2(n-1)/n for all_reduce, (n-1)/n "
        "where each rank holds a part, 1 otherwise. GB are decimal, sizes binary.\n\n"
        "Calls are timed in batches after a barrier. The time of a batch is the slowest rank's; "
        "time is the median over batches, p99 their 99th percentile. limit is what this machine "
        "allows, measured in the same run: one cache line between two cores, or all receivers "
        "copying as many bytes at once.\n\n"
        "Every result is compared with a reference that is computed from (rank, index) alone; "
        "wrong "
        "counts elements on all ranks (exit code 1).",
    .options = kOptions,
    .run = run_bench};

}  // namespace unisono::cli
