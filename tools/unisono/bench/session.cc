#include "bench/session.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/bytes_text.h"
#include "bench/page.h"
#include "bench/progress_line.h"
#include "bench/read_options.h"
#include "bench/this_machine.h"
#include "cli/failure.h"
#include "cli/output_file.h"

namespace unisono::cli {
namespace {

std::string case_text(const Case& row) {
  return fmt::format("{} {} {} {}{}", row.workload.name(), row.algorithm, to_string(row.dtype),
                     format_bytes(row.bytes), row.in_place ? " in place" : "");
}

bool several(const std::vector<Case>& cases) {
  return std::any_of(cases.begin(), cases.end(), [&](const Case& row) {
    return row.workload.name() != cases.front().workload.name();
  });
}

CpuUse cpu_use_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {.at_s = std::chrono::duration<double>(now).count(),
          .machine_s = used_cpu_s(),
          .own_s = own_cpu_s()};
}

}  // namespace

Session::Session(Communicator& comm, const Arguments& arguments, const Console& console)
    : comm_(comm), arguments_(arguments), console_(console) {
  main_job_ = arguments.has("main-job");
  format_ = read_format(arguments, console);
  paged_ = main_job_ && format_ == Format::text;
  speaks_ = comm.rank() == 0;
}

int Session::run() {
  if (main_job_ && !arguments_.operands().empty()) {
    throw UsageError("--main-job cannot be used with a collective", {}, "unisono help bench");
  }
  const std::vector<Case> cases =
      main_job_ ? main_job_cases(comm_.size())
                : sweep_cases(read_sweep(arguments_, comm_.size()), comm_.size());
  check_plot();
  open_table();
  // The rows on the screen already show the progress.
  ProgressLine progress(table_.has_value() && !console_.quiet());
  Runner runner(comm_, runner_options(cases));
  heading_ = {.ranks = comm_.size(),
              .cpus = online_cpus(),
              .hosts = comm_.hosts(),
              .iterations = static_cast<int>(arguments_.number("iters", 0, 100'000'000)),
              .hop_us = runner.hop_us(),
              .registered = arguments_.has("registered"),
              .persistent = arguments_.has("persistent"),
              .fresh = arguments_.has("fresh"),
              .several = several(cases),
              .narrow = !table_.has_value() && !console_.verbose() && console_.width() < 150};
  add_to_table(heading_text(format_, heading_, console_));
  note_one_rank();
  start_ = cpu_use_now();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    progress.show(fmt::format("{}/{}  {}", i + 1, cases.size(), case_text(cases[i])));
    rows_.push_back(runner.run(cases[i]));
    print_from(i, cases);
  }
  progress.clear();
  others_ = paged_ ? cores_of_others() : 0;
  add_to_table(footer_text(format_, rows_, console_));
  close_table();
  write_plot();
  return verdict();
}

// Collective: adds the CPU use of all ranks. Returns 0 if ranks are on several hosts, because rank
// 0 sees only its own host.
double Session::cores_of_others() const {
  const CpuUse now = cpu_use_now();
  double ranks_s = now.own_s - start_.own_s;
  comm_.all_reduce(std::span<double>(&ranks_s, 1), sum);
  const double machine_s = now.machine_s - start_.machine_s;
  return comm_.hosts() > 1 ? 0 : std::max(0.0, machine_s - ranks_s) / (now.at_s - start_.at_s);
}

// For output formats whose rows cannot contain this note.
void Session::note_one_rank() const {
  if (speaks_ && comm_.size() == 1 && format_ != Format::text) {
    console_.note(fmt::format("1 rank: nothing is communicated; {}more ranks: {}",
                              heading_.iterations > 0 ? "-n is --iters; " : "", kMoreRanks));
  }
}

RunnerOptions Session::runner_options(const std::vector<Case>& cases) const {
  RunnerOptions options{
      .timing = {.iterations = static_cast<int>(arguments_.number("iters", 0, 100'000'000)),
                 .warmup = static_cast<int>(arguments_.number("warmup", 0, 100'000'000)),
                 .target_s = main_job_ ? 0.01 : arguments_.seconds("time-per-row"),
                 .least_iterations = main_job_ ? 2 : 3,
                 .fresh = arguments_.has("fresh")},
      .registered = arguments_.has("registered"),
      .persistent = arguments_.has("persistent"),
      .random = arguments_.text("data") == "random",
      .most_bytes = 0};
  for (const Case& row : cases) {
    options.most_bytes = std::max(options.most_bytes, row.bytes);
  }
  return options;
}

void Session::say(const std::string& text) const {
  if (speaks_ && !text.empty()) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
}

void Session::add_to_table(const std::string& text) {
  if (table_.has_value()) {
    *table_ += text;
  } else {
    say(text);
  }
}

void Session::open_table() {
  if (speaks_ && paged_ && !arguments_.has("all")) {
    check_output(arguments_.text("table"));
    table_.emplace();
  }
}

void Session::close_table() {
  if (table_.has_value()) {
    write_output(arguments_.text("table"), *table_);
  }
}

// nccl-tests has one line for both places: the out-of-place row waits for the in-place one.
void Session::print_from(std::size_t i, const std::vector<Case>& cases) {
  const bool pairs = format_ == Format::nccl_tests;
  const bool follows = i + 1 < cases.size() && cases[i + 1].in_place && !cases[i].in_place;
  if (pairs && follows) {
    return;
  }
  const bool second = pairs && i > 0 && cases[i].in_place && !cases[i - 1].in_place;
  add_to_table(second ? row_text(format_, rows_[i - 1], &rows_[i], heading_, console_)
                      : row_text(format_, rows_[i], nullptr, heading_, console_));
}

// Reports the error before anything is measured.
void Session::check_plot() const {
  if (speaks_ && arguments_.has("plot")) {
    std::filesystem::path path = arguments_.text("plot");
    if (path.has_extension() && path.extension() != ".svg") {
      throw UsageError(fmt::format("--plot writes SVG, but {} does not end in .svg", path.string()),
                       fmt::format("--plot {}", path.replace_extension(".svg").string()),
                       "unisono help bench");
    }
    check_output(path.string());
  }
}

void Session::write_plot() const {
  if (!speaks_ || !arguments_.has("plot")) {
    return;
  }
  const std::string path = arguments_.text("plot");
  write_output(path, plot_svg(rows_));
  console_.note(fmt::format("# plot: {}", path));
}

int Session::verdict() const {
  std::uint64_t wrong = 0;
  for (const Row& row : rows_) {
    wrong += row.wrong;
  }
  if (!speaks_) {
    return kDone;
  }
  if (main_job_) {
    say(main_job_end());
  }
  if (wrong != 0) {
    const Row& first = *first_wrong(rows_);
    Case what = first.what;
    what.algorithm = first.algorithm;
    print_error(console_, "wrong", fmt::format("{} elements differ from the reference", wrong),
                fmt::format("the first: {}, {} elements", case_text(what), first.wrong),
                "use --algorithm NAME to find out whether one algorithm causes it");
    return kAnswerIsNo;
  }
  return too_slow() ? kTooSlow : kDone;
}

std::string Session::main_job_end() const {
  if (format_ == Format::jsonl) {
    std::uint64_t wrong = 0;
    for (const Row& row : rows_) {
      wrong += row.wrong;
    }
    return fmt::format("{{\"schema\":\"unisono.bench_end/1\",\"rows\":{},\"wrong\":{}}}\n",
                       rows_.size(), wrong);
  }
  return paged_ ? page_text(rows_,
                            {.ranks = comm_.size(),
                             .hosts = comm_.hosts(),
                             .cpus = online_cpus(),
                             .cpu = cpu_model(),
                             .cache_bytes = last_cache_bytes(),
                             .others = others_,
                             .table = arguments_.has("all") ? "" : arguments_.text("table"),
                             .program = own_path(),
                             .unicode = terminal_has_unicode()},
                            console_)
                : "";
}

bool Session::too_slow() const {
  const double least = arguments_.has("min-busbw") ? arguments_.real("min-busbw") : 0;
  const double most_us = arguments_.has("max-time") ? arguments_.seconds("max-time") * 1e6 : 0;
  std::string detail;
  for (const Row& row : rows_) {
    if (row.bytes > 0 && row.busbw() < least) {
      detail += fmt::format("{}: busbw {:.2f} GB/s, requested {:g}\n", case_text(row.what),
                            row.busbw(), least);
    }
    if (most_us > 0 && row.timing.time_us > most_us) {
      detail += fmt::format("{}: {:.1f} us, requested {:g}\n", case_text(row.what),
                            row.timing.time_us, most_us);
    }
  }
  if (detail.empty()) {
    return false;
  }
  print_error(console_, "too_slow",
              comm_.size() == 1 ? "slower than requested: one rank moves nothing, and has no busbw"
                                : "slower than requested",
              detail, comm_.size() == 1 ? kMoreRanks : "unisono doctor");
  return true;
}

}  // namespace unisono::cli
