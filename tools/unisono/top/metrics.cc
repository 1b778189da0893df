#include "top/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/rank_list.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kOther = "other";
constexpr double kNsPerSecond = 1e9;

// Returns a label's value in quotes. Prometheus supports three escapes and accepts only UTF-8, and
// a label that was cut may be invalid UTF-8.
std::string quoted(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') {
      c = ' ';
    }
  }
  return nlohmann::json(std::move(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string with(std::string labels, std::string_view name, std::string_view value) {
  return fmt::format("{}{}{}={}", labels, labels.empty() ? "" : ",", name,
                     quoted(std::string(value)));
}

std::uint64_t ns_since(std::int64_t since_ns, std::int64_t now_ns) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - since_ns, 0));
}

std::string_view operation_of(const comm::ObservedRank& rank) {
  switch (rank.waiting->what) {
    case comm::WaitTarget::What::send:
      return comm::name_of_kind(comm::kSendKind);
    case comm::WaitTarget::What::recv:
      return comm::name_of_kind(comm::kRecvKind);
    default:
      return to_string(rank.newest.collective);
  }
}

// Returns the world rank that a waiting rank really waits for: the rank whose message is missing
// may itself wait for a rank that has not entered the collective.
int late_rank(const comm::ObservedGroup& group, const comm::ObservedRank& rank) {
  const int peer = rank.waiting->peer;
  if (rank.waiting->what != comm::WaitTarget::What::collective || peer < 0) {
    return peer;
  }
  int late = peer;
  for (const comm::ObservedRank& other : group.ranks) {
    if (other.newest.sequence < rank.newest.sequence) {
      if (other.world_rank == peer) {
        return peer;
      }
      late = late == peer ? other.world_rank : late;
    }
  }
  return late;
}

std::string_view state_of(const Job& job, std::size_t rank) {
  if (job.world.left[rank]) {
    return "left";
  }
  const auto& process = job.processes[rank];
  if (!process || process->state == 'Z' || process->state == 'X') {
    return "gone";
  }
  return process->state == 'T' || process->state == 't' ? "stopped" : "alive";
}

}  // namespace

const Metrics::Family& Metrics::family_of(Name name) {
  static constexpr Family kFamilies[] = {
      {"unisono_calls", "counter", "", "Calls begun."},
      {"unisono_call_bytes", "counter", "bytes",
       "Bytes of the calls, for each the larger of its input and output."},
      {"unisono_moving_seconds", "counter", "seconds", "Time in blocking calls without waiting."},
      {"unisono_waiting_seconds", "counter", "seconds",
       "Time waited for other ranks, including the wait in progress."},
      {"unisono_caused_waiting_seconds", "counter", "seconds",
       "Time that ranks on this host have waited for this rank, up to their last wait that ended."},
      {"unisono_cpu_seconds", "counter", "seconds", "Processor time of the rank's process."},
      {"unisono_wait_seconds", "gauge", "seconds",
       "How long the wait in progress has lasted, from a millisecond on."},
      {"unisono_wait_for_rank", "gauge", "", "The rank that the wait in progress is for."},
      {"unisono_most_waited_for_rank", "gauge", "", "The rank that this one has waited for most."},
      {"unisono_rank_state", "gauge", "", "1 for the state of the rank's process."},
      {"unisono_world_ranks", "gauge", "", "Ranks of the world on all hosts."},
      {"unisono_world_groups", "gauge", "", "Groups of the world with ranks on this host."},
      {"unisono_world_aborted", "gauge", "", "1 if the world has ended with an error."},
      {"unisono_group", "info", "", "The members of a group on this host."},
      {"unisono_label", "info", "", "The current label of a rank's calls."},
      {"unisono_build", "info", "", "The version of unisono top."}};
  static_assert(std::size(kFamilies) == static_cast<std::size_t>(Name::build) + 1);
  return kFamilies[static_cast<std::size_t>(name)];
}

Metrics::GroupKey Metrics::key_of(const comm::ObservedGroup& group) {
  return {group.id, group.first, group.size};
}

// Collects one scrape.
class Metrics::Scrape {
 public:
  Scrape(const std::string& host, std::int64_t now_ns) : host_(host), now_ns_(now_ns) {}

  void add(const Job& job, World& world) {
    const std::string base = with(with("", "world", world.name), "host", host_);
    seen_.clear();
    for (std::size_t rank = 0; rank < job.world.pids.size(); ++rank) {
      if (is_here(job, rank)) {
        add_rank(job, rank, world, with(base, "rank", std::to_string(rank)));
      }
    }
    add_group(job, job.world.group, "world", world, base);
    for (const comm::ObservedGroup& group : job.groups) {
      const auto named = world.groups.find(key_of(group));
      add_group(job, group, named == world.groups.end() ? std::string(kOther) : named->second,
                world, base);
    }
    set(Name::world_ranks, base, static_cast<double>(job.world.pids.size()));
    set(Name::world_groups, base, static_cast<double>(job.groups.size() + 1));
    set(Name::world_aborted, base, job.world.abort.empty() ? 0 : 1);
    for (auto& [series, counter] : world.counters) {
      std::erase_if(counter.last,
                    [this](const auto& source) { return !seen_.contains(source.first); });
      counters_[series] = counter.total;
    }
  }

  void set(Name name, const std::string& labels, double value) { gauges_[{name, labels}] = value; }

  std::string text(Format format) const {
    std::string text;
    const Name* last = nullptr;
    const auto head = [&](const Name& name) {
      if (last == nullptr || *last != name) {
        text += head_of(family_of(name), format);
        last = &name;
      }
    };
    for (const auto& [series, value] : counters_) {
      head(series.first);
      const Family& family = family_of(series.first);
      text += std::string_view(family.unit) == "seconds"
                  ? fmt::format("{}_total{{{}}} {}.{:09}\n", family.name, series.second,
                                value / 1'000'000'000, value % 1'000'000'000)
                  : fmt::format("{}_total{{{}}} {}\n", family.name, series.second, value);
    }
    for (const auto& [series, value] : gauges_) {
      head(series.first);
      const Family& family = family_of(series.first);
      const bool is_info = std::string_view(family.type) == "info";
      text +=
          fmt::format("{}{}{{{}}} {}\n", family.name, is_info ? "_info" : "", series.second, value);
    }
    return format == Format::openmetrics ? text + "# EOF\n" : text;
  }

 private:
  static std::string head_of(const Family& family, Format format) {
    const std::string_view type = family.type;
    if (format == Format::openmetrics) {
      const std::string_view unit = family.unit;
      return fmt::format("# TYPE {0} {1}\n{2}# HELP {0} {3}\n", family.name, type,
                         unit.empty() ? "" : fmt::format("# UNIT {} {}\n", family.name, unit),
                         family.help);
    }
    const std::string name = std::string(family.name) + (type == "counter" ? "_total"
                                                         : type == "info"  ? "_info"
                                                                           : "");
    return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type == "info" ? "gauge" : type,
                       family.help);
  }

  void count(World& world, Name name, const std::string& labels, const std::string& source,
             std::uint64_t value) {
    Counter& counter = world.counters[{name, labels}];
    std::uint64_t& last = counter.last[source];
    counter.total += value - std::min(value, last);
    last = std::max(value, last);
    seen_.insert(source);
  }

  void add_rank(const Job& job, std::size_t rank, World& world, const std::string& labels) {
    for (const std::string_view state : {"alive", "gone", "left", "stopped"}) {
      set(Name::rank_state, with(labels, "state", state), state == state_of(job, rank) ? 1 : 0);
    }
    if (const auto& process = job.processes[rank]) {
      count(world, Name::cpu_seconds, labels, std::to_string(process->pid),
            static_cast<std::uint64_t>(process->cpu_s * kNsPerSecond));
    }
    if (const std::string& label = job.world.labels[rank]; !label.empty()) {
      set(Name::label, with(labels, "label", shown_label(world, label)), 1);
    }
  }

  static std::string_view shown_label(World& world, const std::string& label) {
    if (world.labels.size() < kMostLabels) {
      world.labels.insert(label);
    }
    return world.labels.contains(label) ? label : kOther;
  }

  void add_group(const Job& job, const comm::ObservedGroup& group, const std::string& name,
                 World& world, const std::string& base) {
    const std::string labels = with(base, "group", name);
    std::vector<int> here;
    for (const comm::ObservedRank& rank : group.ranks) {
      here.push_back(rank.world_rank);
      const std::string source =
          fmt::format("{} {} {} {}", group.id, group.first, group.size, rank.world_rank);
      const std::string with_rank = with(labels, "rank", std::to_string(rank.world_rank));
      add_calls(job, rank, world, with_rank, source);
      for (const auto& [peer, waited_ns] : rank.waited_for_ns) {
        count(world, Name::caused_waiting_seconds, with(base, "rank", std::to_string(peer)), source,
              waited_ns);
      }
      if (rank.waiting) {
        add_wait(*rank.waiting, late_rank(group, rank),
                 with(with_rank, "operation", operation_of(rank)));
      }
      if (name != kOther && rank.waited_most_for >= 0) {
        set(Name::most_waited_for_rank, with_rank, rank.waited_most_for);
      }
      if (!rank.label.empty()) {
        set(Name::label, with(with_rank, "label", shown_label(world, rank.label)), 1);
      }
    }
    if (name != kOther) {
      set(Name::group,
          with(with(labels, "ranks", rank_list(here)), "size", std::to_string(group.size)), 1);
    }
  }

  void add_calls(const Job& job, const comm::ObservedRank& rank, World& world,
                 const std::string& labels, const std::string& source) {
    for (std::size_t kind = 0; kind < rank.calls.size(); ++kind) {
      const comm::ObservedCalls& calls = rank.calls[kind];
      if (calls.calls == 0) {
        continue;
      }
      // A failed call leaves its wait open.
      const std::uint64_t waiting_ns =
          calls.since_ns != 0 && job.world.abort.empty() ? ns_since(calls.since_ns, now_ns_) : 0;
      const std::string of = with(labels, "operation", comm::name_of_kind(static_cast<int>(kind)));
      count(world, Name::calls, of, source, calls.calls);
      count(world, Name::call_bytes, of, source, calls.bytes);
      count(world, Name::moving_seconds, of, source, calls.moving_ns);
      count(world, Name::waiting_seconds, of, source, calls.waited_ns + waiting_ns);
    }
  }

  // Keeps the longest wait of the groups that share a name.
  void add_wait(const comm::WaitTarget& waiting, int for_rank, const std::string& labels) {
    const double waits_s = static_cast<double>(ns_since(waiting.since_ns, now_ns_)) / kNsPerSecond;
    const auto before = gauges_.find({Name::wait_seconds, labels});
    if (before != gauges_.end() && before->second >= waits_s) {
      return;
    }
    set(Name::wait_seconds, labels, waits_s);
    gauges_.erase({Name::wait_for_rank, labels});
    if (for_rank >= 0) {
      set(Name::wait_for_rank, labels, for_rank);
    }
  }

  const std::string& host_;
  const std::int64_t now_ns_;
  std::map<Series, std::uint64_t> counters_;
  std::map<Series, double> gauges_;
  std::set<std::string> seen_;  // sources in the world that is being added
};

// Names new groups and labels, and drops worlds that have ended. A name stays with its world.
void Metrics::follow(const std::vector<Job>& jobs) {
  std::erase_if(worlds_, [&jobs](const auto& world) {
    return std::none_of(jobs.begin(), jobs.end(),
                        [&world](const Job& job) { return job.segment == world.first; });
  });
  for (const Job& job : jobs) {
    const auto [entry, is_new] = worlds_.try_emplace(job.segment);
    World& world = entry->second;
    if (is_new) {
      std::string name = job.world.job.empty() ? "job" : job.world.job;
      const bool taken = std::any_of(worlds_.begin(), worlds_.end(), [&name](const auto& other) {
        return other.second.name == name;
      });
      world.name = taken ? fmt::format("{}@{}", name, job.segment) : std::move(name);
    }
    for (const comm::ObservedGroup& group : job.groups) {
      const auto key = key_of(group);
      if (world.groups.size() < kMostGroups && !world.groups.contains(key)) {
        // The name is the same on all hosts.
        world.groups[key] =
            fmt::format("{:08x}", Hash().add(group.id)
                                          .add(static_cast<std::uint64_t>(group.first))
                                          .add(static_cast<std::uint64_t>(group.size))
                                          .value() >>
                                      32U);
      }
    }
  }
}

std::string Metrics::text(const std::vector<Job>& jobs, std::int64_t now_ns, Format format) {
  follow(jobs);
  Scrape scrape(host_, now_ns);
  scrape.set(Name::build, with("", "version", UNISONO_VERSION), 1);
  for (const Job& job : jobs) {
    scrape.add(job, worlds_.at(job.segment));
  }
  return scrape.text(format);
}

std::string Metrics::content_type(Format format) {
  return format == Format::openmetrics ? "application/openmetrics-text; version=1.0.0"
                                       : "text/plain; version=0.0.4";
}

}  // namespace unisono::cli
