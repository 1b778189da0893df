// The metrics of the jobs on this host as text for Prometheus.
//
// A counter never falls while its world lives, even if its group is closed. A world has series for
// at most kMostGroups groups and kMostLabels labels; all further groups and labels share the name
// "other".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "top/jobs.h"

namespace unisono::cli {

class Metrics {
 public:
  static constexpr std::size_t kMostGroups = 64;
  static constexpr std::size_t kMostLabels = 64;
  enum class Format : std::uint8_t { prometheus, openmetrics };

  // `host`: the name of this host.
  explicit Metrics(std::string host) : host_(std::move(host)) {}

  // Returns the text of one scrape. `now_ns` is of comm::flight_clock_ns().
  std::string text(const std::vector<Job>& jobs, std::int64_t now_ns, Format format);

  static std::string content_type(Format format);

 private:
  enum class Name : std::uint8_t {
    calls,
    call_bytes,
    moving_seconds,
    waiting_seconds,
    caused_waiting_seconds,
    cpu_seconds,
    wait_seconds,
    wait_for_rank,
    most_waited_for_rank,
    rank_state,
    world_ranks,
    world_groups,
    world_aborted,
    group,
    label,
    build
  };
  struct Family {
    const char* name;
    const char* type;
    const char* unit;
    const char* help;
  };
  static const Family& family_of(Name name);

  using Series = std::pair<Name, std::string>;  // and its labels
  // The counter of a closed group keeps its last value, and a group of the same name adds to it.
  struct Counter {
    std::uint64_t total = 0;
    std::map<std::string, std::uint64_t> last = {};  // by the source that counts
  };
  using GroupKey = std::tuple<std::uint64_t, int, int>;
  static GroupKey key_of(const comm::ObservedGroup& group);
  struct World {
    std::string name = {};
    std::map<GroupKey, std::string> groups = {};  // the names of the first kMostGroups
    std::set<std::string> labels = {};
    std::map<Series, Counter> counters = {};
  };
  class Scrape;

  void follow(const std::vector<Job>& jobs);

  std::string host_;
  std::map<std::uint64_t, World> worlds_;  // by Job::segment
};

}  // namespace unisono::cli
