#include "tune/campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "cli/failure.h"
#include "cli/output_file.h"
#include "run/job.h"
#include "run/launcher.h"
#include "run/spawn.h"
#include "tune/measure_threads.h"

namespace unisono::cli {
namespace {

constexpr int kRounds = 6;
constexpr double kBarCells = 24;
constexpr double kThreadsShare = 0.2;  // the share of the time for numbers of threads

// A temporary file of this process, which is removed at the end.
class ScratchFile {
 public:
  ScratchFile() : path_((std::filesystem::temp_directory_path() / "unisono-tune-XXXXXX").string()) {
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) {
      refuse_output(path_, errno);
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
      throw UsageError(fmt::format("--ranks cannot be '{}'", text),
                       "give counts from 1, such as 2,4,8");
    }
    counts.insert(ranks);
  }
  return {counts.begin(), counts.end()};
}

void show_progress(const Console& console, double done, double seconds, int ranks) {
  const double part = std::clamp(done / seconds, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(part * kBarCells);
  console.progress(fmt::format("{}{} {:3.0f} %  measuring {} rank{}", std::string(full, '#'),
                               std::string(static_cast<std::size_t>(kBarCells) - full, '.'),
                               100 * part, ranks, ranks == 1 ? "" : "s"));
}

// More ranks take longer, but not in proportion.
double weight(int ranks) {
  return ranks + 2.0;
}

}  // namespace

Campaign::Campaign(const Arguments& arguments, const Console& console)
    : console_(console),
      max_bytes_(arguments.text("max-bytes")),
      sizes_(arguments.has("sizes") ? arguments.text("sizes") : ""),
      threads_(thread_counts_of(arguments)),
      seconds_(arguments.seconds("time")) {
  // Errors in the options are reported here, not by every rank.
  is_long_ = measure_options(arguments).most_bytes >= kShortestForThreads;
  if (threads_.size() == 1) {
    throw UsageError(fmt::format("--threads cannot be '{}'", arguments.text("threads")),
                     "give at least two numbers to compare, such as 1,2");
  }
  for (const int ranks : rank_counts(arguments)) {
    counts_.push_back(ranks);
    left_ += kRounds * weight(ranks);
  }
}

std::optional<int> Campaign::run() {
  for (int round = 0; round < kRounds; ++round) {
    for (const int ranks : counts_) {
      const double share = (seconds_ - seconds()) * weight(ranks) / left_;
      left_ -= weight(ranks);
      if (const auto code = run_jobs(ranks, std::max(share, 0.05))) {
        console_.end_progress();
        return code;
      }
    }
  }
  console_.end_progress();
  return std::nullopt;
}

double Campaign::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::optional<int> Campaign::run_jobs(int ranks, double seconds) {
  const std::vector<int> threads =
      is_long_ ? thread_counts(threads_, ranks, static_cast<int>(allowed_cpus().size()))
               : std::vector<int>();
  const double share = threads.empty() ? 0 : kThreadsShare;
  if (const auto code = run_job(ranks, seconds * (1 - share), {})) {
    return code;
  }
  return threads.empty() ? std::nullopt : run_job(ranks, seconds * share, threads);
}

std::optional<int> Campaign::run_job(int ranks, double seconds, const std::vector<int>& threads) {
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
  if (!threads.empty()) {
    options.program.insert(options.program.end(),
                           {"--threads", fmt::format("{}", fmt::join(threads, ","))});
    options.threads = threads.back();
  }
  options.environment = job_environment(ranks, "shm");
  options.environment.insert(
      options.environment.end(),
      {"UNISONO_PROFILE=none", "UNISONO_ALGORITHM", "UNISONO_WAIT", "UNISONO_THREADS"});
  options.timeout_s = 3 * seconds + 60;
  options.output = {.ranks = ranks,
                    .hosts = std::vector<std::string>(static_cast<std::size_t>(ranks), host_name()),
                    .prefix = Prefix::automatic,
                    .out_color = console_.out_color(),
                    .err_color = console_.err_color(),
                    .out_is_terminal = console_.out_is_terminal(),
                    .json = false,
                    .shown = {}};
  options.on_tick = [&] { show_progress(console_, this->seconds(), seconds_, ranks); };
  Launcher launcher(options, console_);
  const JobResult result = launcher.run();
  if (const int code = job_exit_code(result); code != kDone) {
    report_failure(result, options, launcher.output(), console_);
    return code;
  }
  add_measurements(table.path(), measured_);
  return std::nullopt;
}

}  // namespace unisono::cli
