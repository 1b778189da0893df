// `unisono tune`: measures this machine, fits the model, and writes the profile that chooses
// algorithms.
#include "tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "bench/this_machine.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "network_model/choose.h"
#include "network_model/fit_machine.h"
#include "network_model/repeats.h"
#include "run/job.h"
#include "run/spawn.h"
#include "select/choice.h"
#include "select/profile.h"
#include "tune/campaign.h"

namespace unisono::cli {
namespace {

cost::HostInfo this_host() {
  return {.cpu = cpu_model(), .cpus = std::max(1, static_cast<int>(allowed_cpus().size()))};
}

std::string profile_path(const Arguments& arguments) {
  if (arguments.has("output")) {
    return arguments.text("output");
  }
  const std::string path = comm::default_profile_path(read_env);
  if (path.empty()) {
    throw UsageError("there is no home folder to write the profile to", {},
                     "name the file: unisono tune -o profile.json");
  }
  return path;
}

// Reports errors before anything is measured. The folder of a profile may not exist yet.
void prepare_output(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  check_output(path);
}

int most_ranks(const std::vector<cost::Point>& points) {
  int most = 0;
  for (const cost::Point& point : points) {
    most = std::max(most, point.ranks);
  }
  return most;
}

// Programs read the default profile automatically, so a short measurement of few ranks must not
// replace it. A path that the user gives is replaced without being read: it may be a device.
void check_replaces_nothing_larger(const Arguments& arguments, const std::string& path,
                                   int most_now) {
  if (arguments.has("output")) {
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto old = cost::parse_machine_json(text, network_model::fit_machine);
  const int most_before = old.value ? most_ranks(old.value->machine.points()) : 0;
  if (most_before > most_now) {
    throw UsageError(
        fmt::format("the profile would lose its measurements of jobs of {} ranks", most_before),
        fmt::format("{} contains them", path),
        fmt::format("include them with -n {}, or write another profile with -o FILE; -o {} "
                    "replaces it anyway",
                    most_before, path));
  }
}

// Refuses options for measuring with --table, which measures nothing.
void check_table_alone(const Arguments& arguments) {
  for (const char* option : {"ranks", "max-bytes", "sizes", "threads", "time", "times"}) {
    if (arguments.has("table") && arguments.has(option)) {
      throw UsageError(fmt::format("--{} cannot be used with --table", option),
                       "--table does not measure", "remove one of the two");
    }
  }
}

void finish(TuneReport& report, const Measurements& measured, const Console& console) {
  console.progress("fitting");
  if (measured.points.empty()) {
    throw UsageError("nothing was measured", "the time was too short",
                     "give more time with --time");
  }
  std::vector<cost::Point> points = network_model::quickest(measured.points);
  report.slower = network_model::median_over_quickest(measured.points);
  report.errors = network_model::hold_out_sizes(points);
  report.machine.machine = network_model::fit_machine(std::move(points));
  const auto built_in = [](Collective collective, int ranks, double bytes) {
    return comm::default_algorithm(collective, ranks, static_cast<std::size_t>(bytes));
  };
  report.machine.choices = cost::Choices(
      network_model::choose_algorithms(report.machine.machine, built_in),
      network_model::choose_waits(measured.waits), network_model::choose_threads(measured.threads));
  console.end_progress();
}

int run_tune(const Arguments& arguments, const Console& console) {
  if (arguments.has("measure")) {
    measure_into_table(arguments);
    return kDone;
  }
  check_table_alone(arguments);
  TuneReport report;
  report.path = profile_path(arguments);
  prepare_output(report.path);
  if (arguments.has("times")) {
    prepare_output(arguments.text("times"));
  }
  Measurements measured;
  if (arguments.has("table")) {
    for (const std::string& path : arguments.texts("table")) {
      add_measurements(path, measured);
    }
    if (measured.points.empty()) {
      throw UsageError("the tables have no times of algorithms",
                       "wait policies and thread counts alone do not make a profile",
                       "add a table written by `unisono tune --measure FILE` without --threads");
    }
    report.machine.name = arguments.texts("table").front();
    report.accounts = measured.accounts;
    check_replaces_nothing_larger(arguments, report.path, most_ranks(measured.points));
  } else {
    Campaign campaign(arguments, console);
    check_replaces_nothing_larger(arguments, report.path, campaign.most_ranks());
    if (const auto code = campaign.run()) {
      return *code;
    }
    measured = campaign.measured();
    if (arguments.has("times")) {
      write_output(arguments.text("times"), measured.table);
    }
    report.seconds = campaign.seconds();
    report.machine.name = host_name();
    report.machine.host = this_host();
  }
  finish(report, measured, console);
  write_output(report.path, cost::to_json(report.machine));
  print_report(report, console);
  return kDone;
}

constexpr Option kTuneOptions[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "COUNTS",
     .help = "The rank counts to measure.",
     .fallback = "2,4,8"},
    {.name = "max-bytes",
     .letter = 'e',
     .value = "SIZE",
     .help = "The largest size to measure.",
     .fallback = "64M"},
    {.name = "sizes",
     .value = "LIST",
     .help = "Measure the algorithms only at these sizes: 100,4K,1MiB."},
    {.name = "threads",
     .value = "COUNTS",
     .help = "The numbers of threads per rank to measure (UNISONO_THREADS): 1,2,4. Without it: 1, "
             "2, 4 and so on, while there are enough CPUs. With --measure: measure only these, and "
             "no algorithms."},
    {.name = "time",
     .letter = 't',
     .value = "TIME",
     .help = "The total time for measuring. A shorter time leaves out intermediate sizes.",
     .fallback = "30s"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help =
         "The profile to write. Without it: $XDG_CONFIG_HOME/unisono/profile.json or "
         "~/.config/unisono/profile.json, which programs read by default. Its folder is created."},
    {.name = "times",
     .value = "FILE",
     .help = "Also write all measurements to FILE (CSV), for --table."},
    {.name = "table",
     .value = "FILE",
     .help = "Fit the times of this file instead of measuring (columns as for unisono plan --fit).",
     .repeats = true},
    {.name = "measure",
     .value = "FILE",
     .help = "Run as one rank of a job that a launcher has started: measure, and write the times "
             "to FILE for --table."}};

}  // namespace

const Command kTuneCommand = {
    .name = "tune",
    .summary = "measure this machine, so that the fastest algorithms are chosen on it",
    .operands = "",
    .max_operands = 0,
    .runs_program = false,
    .examples =
        {{{"unisono tune",
           "Measure 2, 4 and 8 ranks on this host. From then on, programs use the profile."},
          {"unisono tune -n 2,16 --time 1m -o big.json",
           "Measure other rank counts for twice the time. UNISONO_PROFILE=big.json uses the "
           "profile."},
          {"mpirun -n 6 unisono tune --measure six.csv",
           "Measure under another launcher. unisono tune --table six.csv then makes the "
           "profile."}}},
    .description =
        "Starts the ranks as `unisono run` does, and measures every algorithm of every collective "
        "on f32, out of place, from 8 B up. Slow algorithms are not measured at larger sizes. Then "
        "it measures wait policies (UNISONO_WAIT), and numbers of threads per rank "
        "(UNISONO_THREADS) if there are CPUs for more than one.\n\n"
        "The times are fitted. The profile (unisono.machine/1) states which algorithm is chosen "
        "from which size on, how to wait, and how many threads may move a call. The built-in "
        "default stays unless an alternative is at least 5 % faster, and by more than the noise of "
        "the measurements. Programs read the profile when they connect. UNISONO_PROFILE names "
        "another file, or none; a forced algorithm takes precedence.",
    .options = kTuneOptions,
    .run = run_tune};

}  // namespace unisono::cli
