// `unisono tune`: measures this machine, fits the model, and writes the profile that chooses
// algorithms.
#include "tune/tune.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/bytes_text.h"
#include "base/env.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "comm/choice.h"
#include "comm/profile.h"
#include "model/table.h"
#include "plan/plan.h"
#include "run/job.h"
#include "run/launcher.h"
#include "topo/topo.h"
#include "tune/measure.h"
#include "tune/measure_waits.h"

namespace unisono::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kHeading = "collective,algorithm,ranks,bytes,time_us,wait,crowded\n";
// Of the time of a job: for ways of waiting.
constexpr double kWaitsShare = 0.05;
constexpr int kRounds = 3;
constexpr double kBarCells = 24;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void cannot_write(const std::string& path) {
  throw Error(ErrorCode::resource, fmt::format("cannot write {}\n"
                                               "is the folder there, and the disk not full?",
                                               path));
}

// A file of this process alone, gone when it is done.
class ScratchFile {
 public:
  ScratchFile() : path_((std::filesystem::temp_directory_path() / "unisono-tune-XXXXXX").string()) {
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) {
      cannot_write(path_);
    }
    ::close(fd);
  }
  ~ScratchFile() { ::unlink(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<int> rank_counts(const Arguments& arguments) {
  std::set<int> counts;
  const std::string text = arguments.text("ranks");
  for (const int ranks : parse_ranks(text, kMostJobRanks + 1, "ranks")) {
    if (ranks < 1) {
      throw UsageError(fmt::format("--ranks cannot be '{}'", text), "counts from 1: 2,4,8");
    }
    counts.insert(ranks);
  }
  return {counts.begin(), counts.end()};
}

MeasureOptions measure_options(const Arguments& arguments) {
  MeasureOptions options{.most_bytes = arguments.bytes("max-bytes"),
                         .seconds = arguments.seconds("time")};
  if (!arguments.has("sizes")) {
    constexpr std::uint64_t kLeast = 8;
    if (options.most_bytes < kLeast) {
      throw UsageError(fmt::format("--max-bytes cannot be '{}'", arguments.text("max-bytes")),
                       "the smallest size that is measured is 8 B", "name others with --sizes");
    }
    return options;
  }
  const std::string list = arguments.text("sizes");
  for (std::size_t first = 0; first <= list.size();) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    const auto bytes = parse_bytes(list.substr(first, comma - first));
    if (!bytes) {
      throw UsageError(fmt::format("--sizes cannot be '{}'", list), "sizes: 100,4K,1MiB");
    }
    options.sizes.push_back(*bytes);
    first = comma + 1;
  }
  std::sort(options.sizes.begin(), options.sizes.end());
  options.most_bytes = options.sizes.back();
  return options;
}

// One rank of a job: measures, and rank 0 writes the table.
int run_measure(const Arguments& arguments) {
  const std::string path = arguments.text("measure");
  Communicator comm = Communicator::connect();
  std::ofstream file;
  if (comm.rank() == 0) {
    file.open(path, std::ios::binary);
    file << kHeading;
  }
  MeasureOptions options = measure_options(arguments);
  if (comm.size() > 1) {
    measure_waits(comm, options.seconds * kWaitsShare, [&](const model::TimedWait& one) {
      file << fmt::format("all_reduce,,{},{:.0f},{:.4f},\"{}\",{}\n", one.wait.ranks, one.bytes,
                          one.time_s * 1e6, to_text(one.wait.policy), one.wait.crowded ? 1 : 0);
    });
  }
  options.seconds *= 1 - kWaitsShare;
  measure_algorithms(comm, options, [&](const model::Point& point) {
    file << fmt::format("{},{},{},{:.0f},{:.4f},,\n", to_string(point.collective), point.algorithm,
                        point.ranks, point.bytes, point.time_s * 1e6)
         << std::flush;
  });
  if (comm.rank() == 0 && !file) {
    cannot_write(path);
  }
  return kDone;
}

void show_progress(const Console& console, double done, double seconds, int ranks) {
  const double part = std::clamp(done / seconds, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(part * kBarCells);
  console.progress(fmt::format("{}{} {:3.0f} %  measuring {} rank{}", std::string(full, '#'),
                               std::string(static_cast<std::size_t>(kBarCells) - full, '.'),
                               100 * part, ranks, ranks == 1 ? "" : "s"));
}

// What a table says: of the algorithms, and of ways of waiting.
struct Measurements {
  std::vector<model::Point> points;
  std::vector<model::TimedWait> waits;
};

void add_measurements(const std::string& path, Measurements& all) {
  auto parsed = model::parse_table(read_document(path));
  if (!parsed) {
    throw UsageError(fmt::format("{}, {}: {}", path, parsed.position, parsed.message), {},
                     "unisono help plan says which columns a table has");
  }
  for (const model::Table::Row& row : parsed.value->rows) {
    if (row.wait.empty()) {
      all.points.push_back(row.point);
      continue;
    }
    all.waits.push_back({.wait = {.ranks = row.point.ranks,
                                  .crowded = row.crowded,
                                  .policy = parse_wait_policy(row.wait, {})},
                         .bytes = row.point.bytes,
                         .time_s = row.point.time_s});
  }
}

// Of what was measured more than once the median, the smaller one of two: what disturbs a
// measurement makes it longer.
std::vector<model::Point> merged(const std::vector<model::Point>& points) {
  using Key = std::tuple<Collective, std::string, int, double>;
  std::map<Key, std::vector<double>> times;
  for (const model::Point& point : points) {
    times[{point.collective, point.algorithm, point.ranks, point.bytes}].push_back(point.time_s);
  }
  std::vector<model::Point> result;
  for (auto& [key, values] : times) {
    std::sort(values.begin(), values.end());
    const auto& [collective, algorithm, ranks, bytes] = key;
    result.push_back({.collective = collective,
                      .algorithm = algorithm,
                      .ranks = ranks,
                      .bytes = bytes,
                      .time_s = values[(values.size() - 1) / 2]});
  }
  return result;
}

// Starts the jobs, all rank counts in turn, several times: what disturbs one job, or how its ranks
// happen to meet, then counts once. Larger ones get more of the time.
class Campaign {
 public:
  Campaign(const Arguments& arguments, const Console& console)
      : console_(console),
        max_bytes_(arguments.text("max-bytes")),
        sizes_(arguments.has("sizes") ? arguments.text("sizes") : ""),
        seconds_(arguments.seconds("time")) {
    static_cast<void>(measure_options(arguments));  // refused here, not by every rank
    for (const int ranks : rank_counts(arguments)) {
      counts_.push_back(ranks);
      left_ += kRounds * weight(ranks);
    }
  }

  // An exit code where a job has failed.
  std::optional<int> run() {
    for (int round = 0; round < kRounds; ++round) {
      for (const int ranks : counts_) {
        const double share = (seconds_ - seconds_since(start_)) * weight(ranks) / left_;
        left_ -= weight(ranks);
        if (const auto code = run_job(ranks, std::max(share, 0.05))) {
          console_.end_progress();
          return code;
        }
      }
    }
    console_.end_progress();
    return std::nullopt;
  }
  const Measurements& measured() const { return measured_; }
  double seconds() const { return seconds_since(start_); }

 private:
  // More ranks take longer, but not in proportion.
  static double weight(int ranks) { return ranks + 2.0; }

  std::optional<int> run_job(int ranks, double seconds) {
    const ScratchFile table;
    LaunchOptions options;
    options.ranks = ranks;
    options.program = {std::filesystem::read_symlink("/proc/self/exe").string(),
                       "tune",
                       "--measure",
                       table.path(),
                       "--max-bytes",
                       max_bytes_,
                       "--time",
                       fmt::format("{:.3f}s", seconds)};
    if (!sizes_.empty()) {
      options.program.insert(options.program.end(), {"--sizes", sizes_});
    }
    options.environment = job_environment(ranks);
    options.environment.insert(options.environment.end(),
                               {"UNISONO_PROFILE=none", "UNISONO_ALGORITHM", "UNISONO_WAIT"});
    options.timeout_s = 3 * seconds + 60;
    options.output = {.ranks = ranks,
                      .host = host_name(),
                      .prefix = Prefix::automatic,
                      .out_color = console_.out_color(),
                      .err_color = console_.err_color(),
                      .out_is_terminal = console_.out_is_terminal(),
                      .json = false,
                      .shown = {}};
    options.on_tick = [&] { show_progress(console_, seconds_since(start_), seconds_, ranks); };
    Launcher launcher(options, console_);
    const JobResult result = launcher.run();
    if (const int code = job_exit_code(result); code != kDone) {
      report_failure(result, options, launcher.output(), console_);
      return code;
    }
    add_measurements(table.path(), measured_);
    return std::nullopt;
  }

  const Console& console_;
  std::string max_bytes_;
  std::string sizes_;
  double seconds_;
  std::vector<int> counts_;
  double left_ = 0;
  Clock::time_point start_ = Clock::now();
  Measurements measured_;
};

model::HostInfo this_host() {
  model::HostInfo host{.cpu = {}, .cpus = std::max(1, static_cast<int>(allowed_cpus().size()))};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      host.cpu = line.substr(colon + 2);
      break;
    }
  }
  return host;
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

// Whole or not at all: programs may be starting.
void write_profile(const model::NamedMachine& machine, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  const std::string fresh = path + ".new";
  std::ofstream file(fresh, std::ios::binary);
  file << model::to_json(machine);
  file.close();
  std::error_code failure;
  if (file) {
    std::filesystem::rename(fresh, path, failure);
  }
  if (!file || failure) {
    std::filesystem::remove(fresh, ignored);
    cannot_write(path);
  }
}

void finish(TuneReport& report, const Measurements& measured, const Console& console) {
  console.progress("fitting");
  if (measured.points.empty()) {
    throw UsageError("nothing was measured", "the time was too short", "give more with --time");
  }
  std::vector<model::Point> points = merged(measured.points);
  report.errors = model::hold_out_sizes(points);
  report.machine.machine = model::Machine::fit(std::move(points));
  const auto built_in = [](Collective collective, int ranks, double bytes) {
    return comm::default_algorithm(collective, ranks, static_cast<std::size_t>(bytes));
  };
  report.machine.choices =
      model::Choices(model::choose_algorithms(report.machine.machine, built_in),
                     model::choose_waits(measured.waits));
  write_profile(report.machine, report.path);
  console.end_progress();
}

int run_tune(const Arguments& arguments, const Console& console) {
  if (arguments.has("measure")) {
    return run_measure(arguments);
  }
  TuneReport report;
  report.path = profile_path(arguments);
  Measurements measured;
  if (arguments.has("table")) {
    for (const std::string& path : arguments.texts("table")) {
      add_measurements(path, measured);
    }
    report.machine.name = arguments.texts("table").front();
  } else {
    Campaign campaign(arguments, console);
    if (const auto code = campaign.run()) {
      return *code;
    }
    measured = campaign.measured();
    report.seconds = campaign.seconds();
    report.machine.name = host_name();
    report.machine.host = this_host();
  }
  finish(report, measured, console);
  print_report(report, console);
  return kDone;
}

constexpr Option kOptions[] = {
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
     .help = "Measure these sizes instead of those up to the largest: 100,4K,1MiB."},
    {.name = "time",
     .letter = 't',
     .value = "TIME",
     .help = "How long to measure in all; what is left out then are sizes in between.",
     .fallback = "20s"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "The profile. Without it: $XDG_CONFIG_HOME/unisono/profile.json or "
             "~/.config/unisono/profile.json, which programs read unasked."},
    {.name = "table",
     .value = "FILE",
     .help = "Fit these times instead of measuring (columns as for unisono plan --fit).",
     .repeats = true},
    {.name = "measure",
     .value = "FILE",
     .help = "Be one rank of a job that a launcher has started: measure, and write the times to "
             "FILE for --table."}};

}  // namespace

const Command kTuneCommand = {
    .name = "tune",
    .summary = "measure this machine, so that the fastest algorithms are chosen on it",
    .operands = "",
    .max_operands = 0,
    .runs_program = false,
    .examples = {{{"unisono tune",
                   "Measure 2, 4 and 8 ranks on this host; from then on programs "
                   "use what was found."},
                  {"unisono tune -n 2,16 --time 30s -o big.json",
                   "Other rank counts and more time; UNISONO_PROFILE=big.json uses it."},
                  {"mpirun -n 6 unisono tune --measure six.csv",
                   "Measure under another launcher; unisono tune --table six.csv does the rest."}}},
    .description =
        "Starts the ranks as `unisono run` does, and times every algorithm of every collective on "
        "f32, out of place, from 8 B up. Those that fall behind are not tried at larger sizes. So "
        "are ways of waiting (UNISONO_WAIT).\n\n"
        "The times are fitted, and the profile (unisono.machine/1) says from which size on which "
        "algorithm is chosen, and how to wait: the built-in default stays unless another one is "
        "5 % faster. "
        "Programs read it when they connect. UNISONO_PROFILE names another file, or none; a forced "
        "algorithm comes first.",
    .options = kOptions,
    .run = run_tune};

}  // namespace unisono::cli
