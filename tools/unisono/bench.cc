// `unisono bench`: how fast the collectives are, and whether they are right. What it accepts.
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
     .help = "Timed calls a row, as in nccl-tests; 0: as many as fit in --time-per-row. Ranks are "
             "those of unisono run -n.",
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
     .help = "Every collective and each of its algorithms on f32 and bf16 from 8 B to 16 MiB, on "
             "one screen."},
    {.name = "table",
     .value = "FILE",
     .help = "Where --main-job writes all rows.",
     .fallback = "unisono-bench.txt"},
    {.name = "routing",
     .value = "FILE",
     .help = "With moe: the experts of each token, a token a line, instead of the fixed cases."},
    {.name = "all", .help = "With --main-job: all rows on the screen, too, and no file."}};

void check_moe(const Arguments& arguments) {
  for (const Option& option : kBenchOptions) {
    if (option.name != "routing" && arguments.has(option.name)) {
      throw UsageError(fmt::format("--{} does not go with moe", option.name),
                       "moe takes --routing, and no other option", "unisono help bench");
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
    throw UsageError("moe is measured alone", {}, "unisono bench moe");
  } else if (arguments.has("routing")) {
    throw UsageError("--routing goes with moe", {}, "unisono bench moe --routing FILE");
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
        "time is the median over batches, p99 their 99th percentile (- below 20 batches). On a "
        "terminal of fewer than 150 columns the rows leave out what --verbose adds. limit is what "
        "this machine "
        "allows, measured in the same run: one cache line between two cores, or all ranks copying "
        "as "
        "many bytes at once as the collective must move; a call that was quicker lowers it.\n\n"
        "Every result is compared with a reference that is computed from (rank, index) alone; "
        "wrong "
        "counts elements on all ranks (exit code 1).\n\n"
        "moe measures dispatch and combine of mixtures of experts on fixed cases, or on the "
        "routing of a file, and takes no other option.",
    .options = kBenchOptions,
    .run = run_bench};

}  // namespace unisono::cli
