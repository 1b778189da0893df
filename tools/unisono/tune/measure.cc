#include "tune/measure.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "algorithms/catalog.h"
#include "bench/cases.h"
#include "bench/timing.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kCoarse[] = {8,          512,      4 * kKiB,  32 * kKiB,
                                     256 * kKiB, 2 * kMiB, 16 * kMiB, 64 * kMiB};
constexpr std::uint64_t kFine[] = {64,         2 * kKiB, 12 * kKiB, 96 * kKiB,
                                   768 * kKiB, 6 * kMiB, 32 * kMiB};
constexpr double kTargetS = 0.001;        // per point
constexpr std::uint64_t kTriedAll = 512;  // up to this size every algorithm is measured
constexpr double kNear = 1.4;             // times the best: measured at the next size
constexpr double kFar = 2.5;              // like kNear, for points that take little time
constexpr double kLittle = 1.0 / 200;     // as a share of the whole time
constexpr double kCallsOfAPoint = 3;
constexpr std::uint64_t kSegmentedFrom = 32 * kKiB;
constexpr int kSegments[] = {4, 16};
constexpr std::size_t kAlignment = 4096;

std::vector<std::uint64_t> up_to(std::span<const std::uint64_t> sizes, std::uint64_t most) {
  std::vector<std::uint64_t> result;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(result),
               [most](std::uint64_t bytes) { return bytes <= most; });
  return result;
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Memory like a program's buffers: page aligned and touched.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes + kAlignment) {}
  void* data() {
    void* start = bytes_.data();
    std::size_t space = bytes_.size();
    return std::align(kAlignment, 1, start, space);
  }

 private:
  std::vector<std::byte> bytes_;
};

// A schedule with its measurements.
struct Series {
  const Algorithm* algorithm = nullptr;
  std::vector<std::string> names;  // all algorithms with this schedule
  std::vector<Move> moves;
  std::uint64_t from_bytes = 0;
  std::map<std::uint64_t, double> times;  // by requested size
};

class Prober {
 public:
  Prober(Communicator& comm, const MeasureOptions& options,
         const std::function<void(const cost::Point&)>& report)
      : comm_(comm),
        options_(options),
        report_(report),
        end_s_(now_s() + options.seconds),
        in_(memory_bytes()),
        out_(memory_bytes()) {
    for (const Algorithm* algorithm : catalog()) {
      add(*algorithm);
    }
  }

  void run() {
    const std::uint64_t most = options_.most_bytes;
    if (run_coarse(options_.sizes.empty() ? up_to(kCoarse, most) : options_.sizes) &&
        options_.sizes.empty()) {
      run_fine(up_to(kFine, most));
    }
  }

 private:
  std::size_t memory_bytes() const {
    // A part has at least one element.
    return static_cast<std::size_t>(options_.most_bytes) +
           16 * static_cast<std::size_t>(comm_.size());
  }

  // Returns false if the time is up.
  bool run_coarse(const std::vector<std::uint64_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (auto& [collective, all] : series_) {
        const std::vector<bool> chosen = survivors(all, sizes, i);
        for (std::size_t s = 0; s < all.size(); ++s) {
          const bool has_sizes = collective != Collective::barrier || i == 0;
          if (has_sizes && chosen[s] && !measure_point(all[s], sizes[i])) {
            return false;
          }
        }
      }
    }
    return true;
  }

  void run_fine(const std::vector<std::uint64_t>& sizes) {
    for (const std::uint64_t bytes : sizes) {
      for (auto& [collective, all] : series_) {
        for (Series& one : all) {
          if (collective != Collective::barrier && is_between(one, bytes) &&
              !measure_point(one, bytes)) {
            return;
          }
        }
      }
    }
  }

  void add(const Algorithm& algorithm) {
    const Shape shape{.ranks = comm_.size()};
    if (!can_serve(algorithm, shape)) {
      return;
    }
    add(algorithm, shape, 0);
    if (complete(algorithm, shape).parameters.segments == 0) {
      return;
    }
    for (const int segments : kSegments) {
      Shape other = shape;
      other.parameters.segments = segments;
      if (can_serve(algorithm, other)) {
        add(algorithm, other, kSegmentedFrom);
      }
    }
  }

  void add(const Algorithm& algorithm, const Shape& shape, std::uint64_t from_bytes) {
    std::vector<Series>& all = series_[algorithm.collective];
    const std::string name = full_name(algorithm, shape);
    std::vector<Move> moves = build_schedule(algorithm, shape).moves;
    for (Move& move : moves) {
      move.line = 0;
    }
    const auto twin =
        std::find_if(all.begin(), all.end(), [&](const Series& one) { return one.moves == moves; });
    if (twin == all.end()) {
      all.push_back({.algorithm = &algorithm,
                     .names = {name},
                     .moves = std::move(moves),
                     .from_bytes = from_bytes,
                     .times = {}});
    } else if (std::find(twin->names.begin(), twin->names.end(), name) == twin->names.end()) {
      twin->names.push_back(name);
    }
  }

  // Returns the algorithms worth measuring at size number i. The result is the same on all ranks,
  // because the times are.
  std::vector<bool> survivors(const std::vector<Series>& all,
                              const std::vector<std::uint64_t>& sizes, std::size_t i) const {
    std::vector<bool> result(all.size());
    double best = std::numeric_limits<double>::infinity();
    for (const Series& one : all) {
      if (i > 0 && one.times.contains(sizes[i - 1])) {
        best = std::min(best, one.times.at(sizes[i - 1]));
      }
    }
    for (std::size_t s = 0; s < all.size(); ++s) {
      const Series& one = all[s];
      if (sizes[i] <= kTriedAll || one.times.empty()) {
        result[s] = one.from_bytes <= sizes[i];
        continue;
      }
      if (!one.times.contains(sizes[i - 1])) {
        continue;
      }
      const double before = one.times.at(sizes[i - 1]);
      const double growth = static_cast<double>(sizes[i]) / static_cast<double>(sizes[i - 1]);
      const bool quick = before * growth * kCallsOfAPoint < options_.seconds * kLittle;
      result[s] = before <= best * (quick ? kFar : kNear);
    }
    return result;
  }

  // Returns true if the series was measured at the next smaller and larger sizes.
  static bool is_between(const Series& one, std::uint64_t bytes) {
    return !one.times.empty() && one.times.begin()->first < bytes &&
           one.times.rbegin()->first > bytes;
  }

  // Returns false if the time is up, by the clock of rank 0.
  bool measure_point(Series& series, std::uint64_t bytes) {
    std::uint8_t goes_on = now_s() < end_s_ ? 1 : 0;
    comm_.broadcast(std::span(&goes_on, 1), 0);
    if (goes_on == 0) {
      return false;
    }
    const Case row{.workload = {.send_recv = false, .collective = series.algorithm->collective},
                   .algorithm = series.names.front(),
                   .bytes = bytes};
    const CaseCounts layout = layout_of(row, comm_.rank(), comm_.size());
    const Call call{.collective = series.algorithm->collective,
                    .in = layout.in_count == 0 ? nullptr : in_.data(),
                    .out = layout.out_count == 0 ? nullptr : out_.data(),
                    .count = layout.count,
                    .dtype = row.dtype,
                    .root = row.root,
                    .algorithm = series.names.front()};
    const CallTiming timing = measure(
        comm_, {.target_s = kTargetS, .least_iterations = 1, .brief = true},
        [&] { comm_.run(call); }, [] {});
    series.times[bytes] = timing.time_us * 1e-6;
    if (comm_.rank() == 0) {
      for (const std::string& name : series.names) {
        report_({.collective = call.collective,
                 .algorithm = name,
                 .ranks = comm_.size(),
                 .bytes = static_cast<double>(layout.size_bytes),
                 .time_s = timing.time_us * 1e-6});
      }
    }
    return true;
  }

  Communicator& comm_;
  MeasureOptions options_;
  const std::function<void(const cost::Point&)>& report_;
  double end_s_;
  Memory in_;
  Memory out_;
  std::map<Collective, std::vector<Series>> series_;
};

}  // namespace

void measure_algorithms(Communicator& comm, const MeasureOptions& options,
                        const std::function<void(const cost::Point&)>& report) {
  Prober(comm, options, report).run();
}

}  // namespace unisono::cli
