// `unisono run`: starts ranks on this host, or on others through ssh or similar programs.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/env.h"
#include "bootstrap/launcher_env.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "run/chaos.h"
#include "run/job.h"
#include "run/launcher.h"
#include "run/look.h"
#include "run/record.h"
#include "run/spawn.h"

namespace unisono::cli {
namespace {

void add_entries(const Arguments& arguments, bool quiet, const Chaos* chaos,
                 std::vector<std::string>& result) {
  if (quiet) {
    result.emplace_back("UNISONO_QUIET=1");
  }
  result.insert(result.end(), {"UNISONO_RELAY", "UNISONO_LAUNCHER"});  // of another job
  if (chaos != nullptr) {
    const std::vector<std::string> entries = chaos->environment();
    result.insert(result.end(), entries.begin(), entries.end());
  }
  for (const std::string& entry : arguments.texts("env")) {
    if (entry.find('=') == std::string::npos || entry.starts_with("=")) {
      throw UsageError(fmt::format("--env cannot be '{}'", entry), "NAME=VALUE",
                       "unisono help run");
    }
    result.push_back(entry);
  }
}

std::string transport_of(const Arguments& arguments) {
  return arguments.has("transport") ? arguments.text("transport")
                                    : read_env("UNISONO_TRANSPORT").value_or("auto");
}

bool finds_damage(const Arguments& arguments) {
  const std::vector<std::string>& entries = arguments.texts("env");
  const auto is_set = [&](const std::string& name, const std::string& value) {
    return read_env(name) == value ||
           std::find(entries.begin(), entries.end(), name + "=" + value) != entries.end();
  };
  return !is_set("UNISONO_CHECKSUM", "0") || is_set("UNISONO_TLS", "1");
}

// Applies --chaos, if it is given; `first_host` is from --hosts, or empty.
void add_chaos(const Arguments& arguments, const std::string& first_host, const Console& console,
               std::optional<Chaos>& chaos, LaunchOptions& options) {
  const auto plan = read_chaos(arguments, options.ranks, transport_of(arguments), first_host);
  if (!plan) {
    return;
  }
  chaos.emplace(*plan, relay_address(*plan, first_host));
  options.chaos = &*chaos;
  options.replay = replay_command(arguments, *plan);
  console.note("chaos: to repeat this run: " + options.replay);
  if (plan->link.corrupt > 0 && !finds_damage(arguments)) {
    console.note(
        "chaos: corrupt leads to wrong results with UNISONO_CHECKSUM=0 and without UNISONO_TLS=1");
  }
}

std::string job_name(const std::vector<std::string>& environment) {
  constexpr std::string_view kJob = "UNISONO_JOB=";
  const auto job =
      std::find_if(environment.begin(), environment.end(),
                   [kJob](const std::string& entry) { return entry.starts_with(kJob); });
  return job == environment.end() ? "" : job->substr(kJob.size());
}

// Sets the variables that ranks need for recording, if it is requested.
void add_recording(const Arguments& arguments, const std::string& job,
                   std::vector<std::string>& environment, std::optional<JobRecorder>& recorder) {
  if (!arguments.has("record")) {
    if (arguments.has("record-events")) {
      throw UsageError("--record-events needs --record", "--record FILE", "unisono help run");
    }
    return;
  }
  recorder.emplace(arguments.text("record"), job);
  environment.push_back(fmt::format("UNISONO_RECORD_EVENTS={}",
                                    arguments.number("record-events", 1, kMostRecordedEvents)));
  if (arguments.has("hosts")) {
    std::erase_if(environment,
                  [](const std::string& entry) {  // the shell's variable would take precedence
                    return entry.starts_with("UNISONO_RECORD=");
                  });
  }
}

// Sets the number of ranks on several hosts, and the way to start them.
void place_on_hosts(const Arguments& arguments, const Console& console, std::optional<Chaos>& chaos,
                    std::optional<JobRecorder>& recorder, LaunchOptions& options) {
  const std::vector<HostRanks> hosts = parse_hosts(arguments.text("hosts"));
  options.ranks = 0;
  for (const HostRanks& host : hosts) {
    options.ranks += host.ranks;
  }
  if (arguments.has("ranks") && arguments.number("ranks", 1, kMostJobRanks) != options.ranks) {
    throw UsageError(
        fmt::format("--hosts has {} ranks, but -n says {}", options.ranks, arguments.text("ranks")),
        "remove -n", "unisono help run");
  }
  std::vector<std::string> environment =
      hosts_environment(options.ranks, address_of(hosts.front()), transport_of(arguments));
  add_chaos(arguments, address_of(hosts.front()), console, chaos, options);
  options.job = job_name(environment);
  add_recording(arguments, options.job, environment, recorder);
  add_entries(arguments, console.quiet(), options.chaos, environment);
  options.remote = place_ranks(hosts, arguments.text("launcher"), options.program, environment);
}

Prefix prefix_of(const Arguments& arguments) {
  const std::string text = arguments.text("prefix");
  if (arguments.has("no-prefix") || text == "never") {
    return Prefix::never;
  }
  return text == "always" ? Prefix::always : Prefix::automatic;
}

LaunchOptions read_options(const Arguments& arguments, const Console& console,
                           std::optional<Chaos>& chaos, std::optional<JobRecorder>& recorder) {
  if (arguments.program().empty()) {
    throw UsageError("no program to run", "unisono run -n 4 -- ./app", "unisono help run");
  }
  LaunchOptions options;
  options.program = arguments.program();
  if (arguments.has("hosts")) {
    place_on_hosts(arguments, console, chaos, recorder, options);
  } else {
    options.ranks = arguments.has("ranks")
                        ? static_cast<int>(arguments.number("ranks", 1, kMostJobRanks))
                        : std::max(1, static_cast<int>(allowed_cpus().size()));
    options.environment = job_environment(options.ranks, transport_of(arguments));
    add_chaos(arguments, "", console, chaos, options);
    options.job = job_name(options.environment);
    add_recording(arguments, options.job, options.environment, recorder);
    add_entries(arguments, console.quiet(), options.chaos, options.environment);
  }
  options.bind = arguments.text("bind") == "core";
  options.threads = comm::threads_of(read_env);
  options.keep_going = arguments.has("keep-going");
  options.timeout_s = arguments.has("timeout") ? arguments.seconds("timeout") : 0;
  options.log_dir = arguments.text("log-dir");
  options.output = {
      .ranks = options.ranks,
      .hosts = std::vector<std::string>(static_cast<std::size_t>(options.ranks), host_name()),
      .prefix = prefix_of(arguments),
      .out_color = console.out_color(),
      .err_color = console.err_color(),
      .out_is_terminal = console.out_is_terminal(),
      .json = console.json(),
      .shown = {}};
  for (std::size_t rank = 0; rank < options.remote.size(); ++rank) {
    options.output.hosts[rank] = options.remote[rank].host;
  }
  if (arguments.has("only")) {
    options.output.shown.assign(static_cast<std::size_t>(options.ranks), false);
    for (const int rank : parse_ranks(arguments.text("only"), options.ranks, "only")) {
      options.output.shown[static_cast<std::size_t>(rank)] = true;
    }
  }
  return options;
}

std::string_view name_of(const Chaos::ScheduledFault& blow) {
  return blow.signal == SIGKILL ? "kill" : blow.signal == SIGSTOP ? "stop" : "reset";
}

// Warns of faults that did not happen, because a test without a fault shows nothing.
void warn_of_missed_blows(const JobResult& result, const Console& console) {
  for (const Chaos::ScheduledFault& blow : result.missed_blows) {
    const std::string_view name = name_of(blow);
    console.note(fmt::format("warning: chaos: rank {} ended before it could be {}", blow.rank,
                             name == "kill"   ? "killed"
                             : name == "stop" ? "stopped"
                                              : "cut off"));
  }
}

void print_json(const JobResult& result, const LaunchOptions& options) {
  nlohmann::ordered_json row;
  row["schema"] = "unisono.run/1";
  row["exit_code"] = job_exit_code(result);
  row["seconds"] = result.seconds;
  row["timed_out"] = result.timed_out;
  if (!options.replay.empty()) {
    row["replay"] = options.replay;
    row["chaos_missed"] = nlohmann::json::array();
    for (const Chaos::ScheduledFault& blow : result.missed_blows) {
      row["chaos_missed"].push_back({{"rank", blow.rank}, {"what", name_of(blow)}});
    }
  }
  row["went_on"] = result.went_on;
  row["first_failure"] = nullptr;
  if (result.first_failure >= 0) {
    row["first_failure"] = result.first_failure;
  }
  row["cause"] = nullptr;
  if (result.cause >= 0) {
    row["cause"] = result.cause;
  }
  row["never_joined"] = nullptr;
  if (result.never_joined >= 0) {
    row["never_joined"] = result.never_joined;
  }
  row["ranks"] = nlohmann::json::array();
  for (std::size_t rank = 0; rank < result.ends.size(); ++rank) {
    row["ranks"].push_back({{"rank", rank},
                            {"pid", result.ends[rank].pid},
                            {"end", end_text(result.ends[rank]).english}});
  }
  fmt::print("{}\n", row.dump());
}

// Writes the recording. The job has ended, so an error of the recording does not change its exit
// code.
void write_recording(JobRecorder& recorder, const JobResult& result, const LaunchOptions& options,
                     const Console& console) {
  const auto lost = [](std::string_view why) {
    std::fflush(stdout);
    fmt::print(stderr, "warning: the recording is lost: {}\n", why);
  };
  try {
    recorder.write(result, options, console);
  } catch (const UsageError& error) {
    lost(error.what());
  } catch (const Error& error) {
    lost(error.summary());
  }
}

int run_run(const Arguments& arguments, const Console& console) {
  std::optional<Chaos> chaos;
  std::optional<JobRecorder> recorder;
  LaunchOptions options = read_options(arguments, console, chaos, recorder);
  if (recorder) {
    recorder->prepare(options, console);
  }
  std::vector<Finding> findings;
  options.on_stop = [&] { findings = look_around(options.job); };
  Launcher launcher(options, console);
  JobResult result = launcher.run();
  result.findings = std::move(findings);
  if (recorder) {
    write_recording(*recorder, result, options, console);
  }
  report_failure(result, options, launcher.output(), console);
  warn_of_missed_blows(result, console);
  if (console.json()) {
    print_json(result, options);
  }
  return job_exit_code(result);
}

constexpr Option kRunOptions[] = {
    {.name = "ranks",
     .letter = 'n',
     .value = "N",
     .help = "The number of ranks. Without it: one per CPU that this process may use."},
    {.name = "hosts",
     .value = "LIST",
     .help = "Start the ranks on these hosts: a:4,b:4, an IPv6 address in brackets ([::1]:2), or "
             "@FILE with a line for each. The program must exist at the same path on each host, "
             "and the first host must resolve its own name."},
    {.name = "launcher",
     .value = "COMMAND",
     .help = "The command that starts a shell on {host}. Without it: srun inside a Slurm job, else "
             "ssh -o BatchMode=yes {host}."},
    {.name = "transport",
     .value = "WHICH",
     .help = "auto: shared memory within hosts, TCP between them; tcp: TCP also between ranks of "
             "one host; shm: one host only. Default: UNISONO_TRANSPORT, else auto.",
     .choices = "auto|shm|tcp"},
    {.name = "keep-going",
     .help = "When a rank fails, let the other ranks continue: for programs that recover with "
             "shrink(). The job succeeds if at least one rank succeeds."},
    {.name = "timeout",
     .value = "TIME",
     .help = "Stop the job after this time (30s, 500ms, 2m), and exit with 4."},
    {.name = "chaos",
     .value = "WHAT",
     .help = "Inject faults: delay=5ms, jitter=1ms, loss=1%, rate=100Mbit, corrupt=0.1% between "
             "ranks connected by TCP; kill=2@3s, stop=1@2s+500ms, reset=0@1s for a rank at a time; "
             "kill=random@3s for any rank, kill=random for any rank within 5 s; seed=7 to repeat "
             "the random choices. Separate them by commas."},
    {.name = "bind",
     .value = "WHAT",
     .help = "core: bind rank i to the allowed CPU number floor(i * CPUs / ranks), so that "
             "neighbours share a CPU if there are more ranks than CPUs. With UNISONO_THREADS=N, "
             "also to the next N - 1 CPUs.",
     .fallback = "core",
     .choices = "core|none"},
    {.name = "only", .value = "RANKS", .help = "Show the output of these ranks only: 0,2-3."},
    {.name = "log-dir",
     .value = "DIR",
     .help = "Also write each rank's output to DIR/rank-0.out, DIR/rank-0.err, ..."},
    {.name = "record",
     .value = "FILE",
     .help = "Record what each rank does at every step, and when, for unisono view and unisono "
             "trace export; also if the job fails or is stopped. If this is a folder: write a file "
             "named after the job."},
    {.name = "record-events",
     .value = "N",
     .help = "Events that each rank keeps: the newest N; 32 bytes each.",
     .fallback = "32768"},
    {.name = "prefix",
     .value = "WHEN",
     .help = "Put host:rank before each line. auto: not before lines of rank 0 on stdout until "
             "another rank writes there, so that a table stays a table; never for a single rank.",
     .fallback = "auto",
     .choices = "auto|always|never"},
    {.name = "no-prefix", .help = "The same as --prefix=never."},
    {.name = "env",
     .value = "NAME=VALUE",
     .help = "Set a variable for all ranks.",
     .repeats = true}};

}  // namespace

const Command kRunCommand = {
    .name = "run",
    .summary = "start the ranks of a job and watch over them",
    .operands = "-- PROGRAM [ARGUMENT...]",
    .max_operands = 0,
    .runs_program = true,
    .examples = {{{"unisono run -n 4 -- ./train --epochs 3", "Start four ranks of ./train."},
                  {"unisono run --hosts node1:8,node2:8 -- ./train",
                   "Start sixteen ranks on two hosts, through ssh or srun."},
                  {"unisono run -n 8 --only 0 --log-dir logs -- python3 train.py",
                   "Show rank 0, and keep the output of all ranks."}}},
    .description =
        "Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT as "
        "torchrun does, and UNISONO_JOB and UNISONO_TOKEN, which are new for each job.\n\n"
        "If several ranks print the same line within 50 ms, it is printed once: [ranks 0-2] .... "
        "Standard "
        "input goes to rank 0 (to none with --hosts). With --json, each line is a JSON object, and "
        "the last one is the result.\n\n"
        "When a rank dies by a signal or exits with a code other than 0, the other ranks get 2 "
        "seconds (5 with --hosts) to report, then SIGTERM, and a second later SIGKILL; the first "
        "failure is reported. The exit code is that of the failed rank. It is 3 if a signal killed "
        "the rank, or if all ranks exit with code 0 although a rank's last world has failed. No "
        "process of a job outlives the launcher, even if the launcher is killed. With --keep-going "
        "the other ranks continue instead.\n\n"
        "If --chaos kills a rank, the other ranks see an ordinary death, and the launcher lets "
        "them continue: the job succeeds if they succeed. Random choices are printed as the "
        "command that repeats them.",
    .options = kRunOptions,
    .run = run_run};

}  // namespace unisono::cli
