// `unisono bench`: measures the collectives and checks their results. This file has its options.
#include <fmt/format.h>

#include "bench/moe.h"
#include "bench/session.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {
namespace {

constexpr Option kBenchOptions[] = {
    {.name = "min-bytes",
     .letter = 'b',
     .value = "SIZE",
     .help = "Smallest size. Every size is rounded down to whole elements.",
     .fallback = "8"},
    {.name = "max-bytes",
     .letter = 'e',
     .value = "SIZE",
     .help = "Largest size.",
     .fallback = "64M"},
    {.name = "step-factor",
     .letter = 'f',
     .value = "N",
     .help = "Multiply by this from one size to the next.",
     .fallback = "2"},
    {.name = "step-bytes",
     .letter = 'i',
     .value = "SIZE",
     .help = "Add this instead of multiplying."},
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
    {.name = "root",
     .letter = 'r',
     .value = "RANK",
     .help = "The root rank, or all.",
     .fallback = "0"},
    {.name = "algorithm", .value = "NAME", .help = "Force one algorithm (unisono list)."},
    {.name = "place",
     .value = "WHERE",
     .help = "Out of place, in place, or both.",
     .fallback = "both",
     .choices = "out|in|both"},
    {.name = "iters",
     .letter = 'n',
     .value = "N",
     .help = "Timed calls per row, as in nccl-tests; 0: as many as fit into --time-per-row. Set "
             "the number of ranks with unisono run -n.",
     .fallback = "0"},
    {.name = "warmup",
     .letter = 'w',
     .value = "N",
     .help = "Calls before timing; 0: chosen by size.",
     .fallback = "0"},
    {.name = "time-per-row",
     .value = "TIME",
     .help = "The time for which each row is measured.",
     .fallback = "200ms"},
    {.name = "fresh",
     .help = "Before each call, each rank rewrites its input and reads its output, untimed. "
             "Without it, small buffers stay in the cache and look too fast."},
    {.name = "registered", .help = "Use buffers that the other ranks can read directly."},
    {.name = "persistent", .help = "Use persistent operations: arguments are checked once."},
    {.name = "data",
     .value = "KIND",
     .help = "exact: small integers, compared bit by bit; random: reals, compared within an error "
             "bound.",
     .fallback = "exact",
     .choices = "exact|random"},
    {.name = "format",
     .value = "FORM",
     .help = "nccl-tests prints the columns of nccl-tests.",
     .fallback = "text",
     .choices = "text|nccl-tests|csv|jsonl"},
    {.name = "plot", .value = "FILE.svg", .help = "Plot time against bytes, with the limit."},
    {.name = "min-busbw", .value = "GB/S", .help = "Exit with 5 if a row is slower."},
    {.name = "max-time", .value = "TIME", .help = "Exit with 5 if a row takes longer."},
    {.name = "main-job",
     .help = "Every collective and each of its algorithms on f32 and bf16 from 8 B to 16 MiB, on "
             "one screen."},
    {.name = "table",
     .value = "FILE",
     .help = "Where --main-job writes all rows.",
     .fallback = "unisono-bench.txt"},
    {.name = "routing",
     .value = "FILE",
     .help =
         "With moe: the experts of each token, one token per line, instead of the fixed cases."},
    {.name = "all",
     .help = "With --main-job: print all rows on the screen instead of writing a file."}};

void check_moe(const Arguments& arguments) {
  for (const Option& option : kBenchOptions) {
    if (option.name != "routing" && arguments.has(option.name)) {
      throw UsageError(fmt::format("--{} cannot be used with moe", option.name),
                       "moe supports only the option --routing", "unisono help bench");
    }
  }
}

bool has_moe_among_others(const Arguments& arguments) {
  return !arguments.operands().empty() &&
         ("," + arguments.operands().front() + ",").find(",moe,") != std::string::npos;
}

int run_bench(const Arguments& arguments, const Console& console) {
  const bool is_moe = arguments.operands() == std::vector<std::string>{"moe"};
  if (is_moe) {
    check_moe(arguments);
  } else if (has_moe_among_others(arguments)) {
    throw UsageError("moe cannot be combined with collectives", {}, "unisono bench moe");
  } else if (arguments.has("routing")) {
    throw UsageError("--routing needs moe", {}, "unisono bench moe --routing FILE");
  }
  Communicator comm = Communicator::connect();
  if (is_moe) {
    return run_bench_moe(comm, arguments.has("routing") ? arguments.text("routing") : "",
                         own_exchange(comm), console.json());
  }
  return Session(comm, arguments, console).run();
}

}  // namespace

const Command kBenchCommand = {
    .name = "bench",
    .summary = "measure collectives and check every result",
    .operands = "COLLECTIVE[,COLLECTIVE...] | COLLECTIVE/ALGORITHM | send_recv | all | moe",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono run -n 4 -- unisono bench all_reduce -b 1K -e 64M",
                   "Measure all_reduce on four ranks from 1 KiB to 64 MiB."},
                  {"unisono run -n 2 -- unisono bench all_gather -d bf16 --plot gather.svg",
                   "Measure bf16, and draw a plot."},
                  {"unisono run -n 4 -- unisono bench all_reduce -b 64M --format nccl-tests",
                   "Print the columns that parsers of nccl-tests expect."}}},
    .description =
        "Sizes and bandwidths are defined as in nccl-tests: size is the larger of what a rank "
        "sends and "
        "receives in all, algbw = size / time, busbw = algbw x 2(n-1)/n for all_reduce, (n-1)/n "
        "where each rank holds a part, 1 otherwise. GB are decimal, sizes binary.\n\n"
        "Calls are timed in batches after a barrier. The time of a batch is that of the slowest "
        "rank. The column time is the median over batches, and p99 their 99th percentile (- below "
        "20 batches). On a terminal with fewer than 150 columns the rows omit what --verbose adds. "
        "The column limit is a lower bound for the time on this machine, measured in the same run: "
        "the time to pass one cache line between two cores, or the time in which all ranks at once "
        "copy the bytes that the collective must move. If a call is faster than the limit, its "
        "time becomes the limit.\n\n"
        "Every result is compared with a reference that is computed from (rank, index) alone; "
        "the column wrong counts the wrong elements on all ranks. Exit code 1: some elements are "
        "wrong.\n\n"
        "moe measures dispatch and combine of mixtures of experts, on fixed cases or on a routing "
        "file (--routing, the only option that moe supports).",
    .options = kBenchOptions,
    .run = run_bench};

}  // namespace unisono::cli
