// `unisono top`: shows repeatedly the activity of the ranks of running jobs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/wrap.h"
#include "top/jobs.h"
#include "top/metrics.h"
#include "transport/tcp/address.h"
#include "view/page_server.h"

namespace unisono::cli {
namespace {

// One rank over all groups of its job.
struct Line {
  std::uint64_t calls = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t most_waited_ns = 0;          // in one group
  int waited_most_for = -1;                  // there
  const comm::ObservedRank* rank = nullptr;  // in the group in which it waits or has called most
};

// Includes the wait in progress, which a rank adds to its totals only when it ends.
std::vector<Line> lines_of(const Job& job, std::int64_t now) {
  std::vector<Line> lines(job.world.pids.size());
  const auto add = [&lines, now](const comm::ObservedGroup& group) {
    for (const comm::ObservedRank& rank : group.ranks) {
      if (static_cast<std::size_t>(rank.world_rank) >= lines.size()) {
        continue;
      }
      Line& line = lines[static_cast<std::size_t>(rank.world_rank)];
      line.calls += rank.newest.sequence;
      const std::uint64_t waiting_ns =
          rank.waiting
              ? static_cast<std::uint64_t>(std::max<std::int64_t>(now - rank.waiting->since_ns, 0))
              : 0;
      const std::uint64_t waited_ns = rank.waited_ns + waiting_ns;
      line.waited_ns += waited_ns;
      if (waited_ns > line.most_waited_ns) {
        line.most_waited_ns = waited_ns;
        line.waited_most_for = waiting_ns > rank.waited_ns || rank.waited_most_for < 0
                                   ? rank.waiting ? rank.waiting->peer : -1
                                   : rank.waited_most_for;
      }
      if (line.rank == nullptr || rank.waiting ||
          (!line.rank->waiting && rank.newest.sequence > line.rank->newest.sequence)) {
        line.rank = &rank;
      }
    }
  };
  add(job.world.group);
  std::for_each(job.groups.begin(), job.groups.end(), add);
  return lines;
}

std::string waiting_text(const Line& line, std::int64_t now) {
  const comm::WaitTarget& waiting = *line.rank->waiting;
  std::string text =
      fmt::format("waits {:.1f} s", static_cast<double>(now - waiting.since_ns) / 1e9);
  if (waiting.peer >= 0) {
    text += fmt::format(" for rank {}", waiting.peer);
  } else if (waiting.what == comm::WaitTarget::What::recv) {
    text += " for any rank";
  }
  switch (waiting.what) {
    case comm::WaitTarget::What::send:
      return text + fmt::format(" to receive, tag {}", waiting.place);
    case comm::WaitTarget::What::recv:
      return text + fmt::format(" to send, tag {}", waiting.place);
    default:
      return text + fmt::format(", step {} of {} #{}", waiting.place,
                                to_string(line.rank->newest.collective),
                                line.rank->newest.sequence);
  }
}

std::string activity(const Job& job, std::size_t rank, const Line& line, std::int64_t now) {
  if (job.world.left[rank]) {
    return "has left";
  }
  if (line.rank == nullptr || (line.rank->newest.sequence == 0 && !line.rank->waiting)) {
    return "has called nothing yet";
  }
  return line.rank->waiting ? waiting_text(line, now)
                            : "last: " + comm::describe(line.rank->newest);
}

// Returns the label of the call that the line shows: the label of the group, if there is one.
const std::string& label_of(const Job& job, std::size_t rank, const Line& line) {
  const bool has_own = line.rank != nullptr && !line.rank->label.empty();
  return has_own ? line.rank->label : job.world.labels[rank];
}

// The previous values, for rates.
struct Before {
  std::uint64_t calls = 0;
  double cpu_s = 0;
  std::uint64_t waited_ns = 0;
  std::int64_t at_ns = 0;
};
using Memory = std::map<std::pair<std::uint64_t, std::size_t>, Before>;

// Returns the growth per second. The number of calls also falls when a group is closed.
std::string rate_text(double now, double before, double elapsed_s, const char* unit) {
  return fmt::format("{:.0f}{}", std::max(now - before, 0.0) / elapsed_s, unit);
}

// Limits the share to 100 %: a part of a wait whose peer changes is already in the totals before it
// ends.
std::string share_text(std::uint64_t now_ns, std::uint64_t before_ns, double elapsed_s) {
  const double waited_s = static_cast<double>(now_ns - std::min(now_ns, before_ns)) / 1e9;
  return fmt::format("{:.0f} %", 100 * std::min(waited_s / elapsed_s, 1.0));
}

std::string elsewhere_text(const std::vector<std::size_t>& ranks) {
  return ranks.size() == 1
             ? fmt::format("rank {} is on another host: run unisono top there", ranks.front())
             : fmt::format("the other {} ranks are on other hosts: run unisono top there",
                           ranks.size());
}

void print_job(const Job& job, Memory& memory, const Console& console) {
  const std::int64_t now = comm::flight_clock_ns();
  fmt::print("{}  {}\n",
             console.paint(Paint::strong, job.world.job.empty() ? "job" : job.world.job),
             size_text(job));
  if (!job.world.abort.empty()) {
    fmt::print("{}", console.paint(Paint::bad, ended_text(job.world.abort, console.width())));
  }
  fmt::print("{}\n",
             console.paint(
                 Paint::dim,
                 fmt::format("{:>4}  {:>7}  {:<12}  {:>5}  {:>10}  {:>9}  {:>6}  {:>4}  {}", "rank",
                             "pid", "process", "cpu", "calls", "calls/s", "waits", "for", "now")));
  const std::vector<Line> lines = lines_of(job, now);
  std::vector<std::size_t> elsewhere;
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    if (!is_here(job, rank)) {
      elsewhere.push_back(rank);
      continue;
    }
    const Line& line = lines[rank];
    const auto& process = job.processes[rank];
    Before& before = memory[{job.segment, rank}];
    const double elapsed_s = static_cast<double>(now - before.at_ns) / 1e9;
    const double cpu_s = process ? process->cpu_s : 0;
    const bool first = before.at_ns == 0;
    const std::string cpu =
        first || !process ? "-" : rate_text(100 * cpu_s, 100 * before.cpu_s, elapsed_s, " %");
    const std::string rate = first ? "-"
                                   : rate_text(static_cast<double>(line.calls),
                                               static_cast<double>(before.calls), elapsed_s, "");
    const std::string waits = first ? "-" : share_text(line.waited_ns, before.waited_ns, elapsed_s);
    const std::string whom = line.waited_most_for < 0 ? "-" : fmt::to_string(line.waited_most_for);
    const std::string state = state_text(process).english;
    std::string what = activity(job, rank, line, now);
    if (const std::string& label = label_of(job, rank, line); !label.empty()) {
      what += " (" + label + ")";
    }
    const std::string left =
        fmt::format("{:>4}  {:>7}  {:<12}  {:>5}  {:>10}  {:>9}  {:>6}  {:>4}  ", rank,
                    pid_of(job, rank), state, cpu, line.calls, rate, waits, whom);
    const bool fits = display_width(left) + display_width(what) <= console.width();
    const bool waiting = line.rank != nullptr && line.rank->waiting;
    fmt::print("{}{}", fits ? left : left + "\n",
               console.paint(waiting ? Paint::warn : Paint::plain,
                             fits ? what + "\n" : labelled("      ", what, console.width())));
    before = {.calls = line.calls, .cpu_s = cpu_s, .waited_ns = line.waited_ns, .at_ns = now};
  }
  if (!elsewhere.empty()) {
    fmt::print("{}\n", console.paint(Paint::dim, elsewhere_text(elsewhere)));
  }
}

void print_json(const std::vector<Job>& jobs) {
  nlohmann::ordered_json result{{"schema", "unisono.top/1"}, {"jobs", nlohmann::json::array()}};
  const std::int64_t now = comm::flight_clock_ns();
  for (const Job& job : jobs) {
    nlohmann::ordered_json ranks = nlohmann::json::array();
    const std::vector<Line> lines = lines_of(job, now);
    for (std::size_t rank = 0; rank < lines.size(); ++rank) {
      if (!is_here(job, rank)) {
        continue;
      }
      const Line& line = lines[rank];
      nlohmann::ordered_json row{{"rank", rank},
                                 {"pid", pid_of(job, rank)},
                                 {"process", state_text(job.processes[rank]).english},
                                 {"left", static_cast<bool>(job.world.left[rank])},
                                 {"calls", line.calls},
                                 {"waited_s", static_cast<double>(line.waited_ns) / 1e9},
                                 {"waited_most_for", line.waited_most_for},
                                 {"now", activity(job, rank, line, now)},
                                 {"label", label_of(job, rank, line)}};
      if (line.rank != nullptr && line.rank->waiting) {
        row["waits_s"] = static_cast<double>(now - line.rank->waiting->since_ns) / 1e9;
      }
      ranks.push_back(std::move(row));
    }
    result["jobs"].push_back({{"job", job.world.job},
                              {"size", job.world.pids.size()},
                              {"groups", job.groups.size() + 1},
                              {"ended", job.world.abort},
                              {"ranks", std::move(ranks)}});
  }
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Prints the metrics once, or serves them until Ctrl-C.
int publish_metrics(const std::string& where, const std::string& word) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  Metrics metrics(host.data());
  Unrelated unrelated;
  const auto text = [&](Metrics::Format format) {
    const std::vector<Job> jobs = matching_jobs(word, &unrelated);
    return metrics.text(jobs, comm::flight_clock_ns(), format);
  };
  if (where == "-") {
    fmt::print("{}", text(Metrics::Format::prometheus));
    return kDone;
  }
  const bool is_port = where.find_first_not_of("0123456789") == std::string::npos;
  const Parsed<tcp::Address> address =
      tcp::Address::parse(is_port ? fmt::format("127.0.0.1:{}", where) : where);
  if (!address || (!is_port && address.value->port() == 0)) {
    throw UsageError(fmt::format("--metrics: '{}' is no port or address", where),
                     "a port, such as 9750; an address and a port, such as 0.0.0.0:9750; or -",
                     "unisono top --metrics 9750");
  }
  const auto page = [&text](std::string_view request) {
    const auto format = request.find("application/openmetrics-text") == std::string_view::npos
                            ? Metrics::Format::prometheus
                            : Metrics::Format::openmetrics;
    return Page{.type = Metrics::content_type(format), .text = text(format)};
  };
  PageServer server("/metrics", page, *address.value);
  fmt::print("http://{}/metrics: press Ctrl-C to stop\n", server.address().text());
  std::fflush(stdout);
  for (;;) {
    server.serve(-1);
  }
}

int run_top(const Arguments& arguments, const Console& console) {
  const std::string word = arguments.operands().empty() ? "" : arguments.operands().front();
  if (arguments.has("metrics")) {
    return publish_metrics(arguments.text("metrics"), word);
  }
  if (console.json()) {
    print_json(find_jobs(word));
    return kDone;
  }
  const bool once = arguments.has("once") || !console.out_is_terminal();
  const double every_s = std::max(arguments.seconds("every"), 0.01);
  Memory memory;
  for (bool first = true;; first = false) {
    // After the first update, jobs may end.
    const std::vector<Job> jobs = first ? find_jobs(word) : matching_jobs(word);
    if (jobs.empty() && first) {
      fmt::print("{}\n", kNoJobs);
      console.note(kSeenJobs);
      return kDone;
    }
    if (jobs.empty()) {
      fmt::print("\n{} has ended\n", word.empty() ? "the last job" : "it");
      return kDone;
    }
    if (!once) {
      fmt::print("\x1b[H\x1b[J");  // from the top left corner, everything
    }
    for (const Job& job : jobs) {
      print_job(job, memory, console);
      fmt::print("\n");
    }
    if (once) {
      return kDone;
    }
    fmt::print("{}", console.paint(Paint::dim, "Ctrl-C ends"));
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(first ? std::min(every_s, 0.3)
                                                                    : std::min(every_s, 86'400.0)));
  }
}

constexpr Option kTopOptions[] = {
    {.name = "once", .help = "Print once. This is the default if the output is not a terminal."},
    {.name = "every", .value = "TIME", .help = "The time between two updates.", .fallback = "1s"},
    {.name = "metrics",
     .value = "ADDRESS",
     .help = "Serve metrics for Prometheus at http://ADDRESS/metrics until Ctrl-C. With a port "
             "alone, such as 9750, only this host can read them. 0.0.0.0:9750 is every interface: "
             "anybody who can reach the port can read them. - prints them once."}};

}  // namespace

const Command kTopCommand = {
    .name = "top",
    .summary = "watch the ranks of running jobs",
    .operands = "[JOB | PID]",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono top", "Watch all jobs of this host, once a second."},
                  {"unisono top 4711", "Watch the job of one process."},
                  {"unisono top --metrics 9750", "Serve metrics for Prometheus."}}},
    .description =
        "Shows the process of every rank, the number of collectives that it has called, and what "
        "it waits for, if it has waited for a millisecond or more. WAITS is the share of the time "
        "since the last update in which the rank waited for other ranks inside its calls. FOR is "
        "the rank that it has waited for most. The label of the call (Communicator::label) follows "
        "in brackets, as does the expert whose rows the rank waits for.\n\nunisono top reads the "
        "shared memory of the job from outside. The job needs no special start, may hang or be "
        "stopped, and is not disturbed. You must be allowed to read its processes "
        "(process_vm_readv). If a job runs on several hosts, only the ranks of this host are "
        "shown.",
    .options = kTopOptions,
    .run = run_top};

}  // namespace unisono::cli
