// Parses the output of OSU micro-benchmarks, UCC's perftest, the oneCCL benchmark and the Intel MPI
// benchmarks.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "network_model/logs/log_format.h"

namespace unisono::network_model {
namespace {

constexpr const char* kBarrier = "of a barrier, which has no size";

// Returns true if the size is what one rank sends, or what one rank receives.
bool is_of_parts(const std::optional<Collective>& collective) {
  return collective == Collective::all_gather || collective == Collective::all_to_all ||
         collective == Collective::gather || collective == Collective::scatter;
}

bool are_numbers(const std::vector<std::string_view>& words) {
  return std::ranges::all_of(words,
                             [](std::string_view word) { return number_of(word).has_value(); });
}

// Appends a data type or an operation, unless it is "N/A" or "none".
void add_to_kind(std::string& kind, std::string_view word) {
  if (word != "N/A" && word != "none") {
    kind += (kind.empty() ? "" : " ") + std::string(word);
  }
}

//   # OSU MPI Allreduce Latency Test v7.2
//   # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
//   4                       1.87              1.80              1.95        1000
class Osu : public LogFormat {
 public:
  std::string_view name() const override { return "OSU micro-benchmarks"; }
  std::size_t heading_at(std::string_view line) const override { return line.find("# OSU "); }

  // The tables do not contain the number of ranks, but the command before them may.
  void see(std::string_view line) override {
    if (const int ranks = ranks_of_command(line); ranks > 0) {
      ranks_ = ranks;
    }
  }

  void read(const LogLine& line) override {
    if (const std::size_t at = line.text.find("# OSU "); at != kNoPlace) {
      read_title(line.text.substr(at), line.number);
      return;
    }
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.size() > 2 && words[0] == "#" && words[1] == "Datatype:") {
      kind_ = words[2].substr(0, words[2].find('.'));
    }
    if (line.text.find("Latency") != kNoPlace && line.text.find('(') != kNoPlace) {
      has_other_unit_ = line.text.find("(us)") != line.text.find('(');  // the first unit counts
    }
    const bool has_size = table().collective != Collective::barrier;
    const std::size_t us = has_size ? 1 : 0;
    if (words.size() <= us || !number_of(words[0]) || !number_of(words[us])) {
      return;
    }
    PrintedRow row{
        .line = line.number, .bytes = has_size ? *number_of(words[0]) : 0, .kind = kind_};
    row.out_of_place = {.us = number_of(words[us]), .is_wrong = words.back() == "Fail"};
    row.flaw = !has_size ? kBarrier : has_other_unit_ ? kOtherUnit : "";
    add(std::move(row));
  }

 private:
  // Maps "mpirun -np 16 ./osu_allreduce -d cuda" to 16; 0 if it is not such a command.
  static int ranks_of_command(std::string_view line) {
    constexpr std::array<std::string_view, 5> kCounts = {"-n", "-np", "--np", "--ntasks", "-c"};
    if (line.find("osu_") == kNoPlace) {
      return 0;
    }
    const std::vector<std::string_view> words = words_of(line);
    const bool is_srun = std::ranges::find(words, "srun") != words.end();
    for (std::size_t i = 0; i < words.size() && words[i].find("osu_") == kNoPlace; ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string_view option = words[i].substr(0, equals);
      const bool is_count = std::ranges::find(kCounts, option) != kCounts.end() &&
                            !(is_srun && option == "-c");  // -c of srun is the CPUs per task
      const std::string_view value = equals != kNoPlace     ? words[i].substr(equals + 1)
                                     : i + 1 < words.size() ? words[i + 1]
                                                            : std::string_view{};
      if (is_count && number_of(value).value_or(0) >= 1) {
        return static_cast<int>(std::min(*number_of(value), 1e6));
      }
    }
    return 0;
  }

  // Reads "# OSU MPI-CUDA Allreduce Latency Test v7.2": the words between the library and
  // "Latency".
  void read_title(std::string_view title, std::size_t line) {
    std::vector<std::string_view> words = words_of(title);
    std::string test;
    for (std::size_t i = 2; i < words.size() && words[i] != "Test"; ++i) {
      const std::string_view library = words[i].substr(0, words[i].find('-'));  // "NCCL-CUDA"
      const bool is_library = i == 2 && (library == "MPI" || library == "NCCL" ||
                                         library == "RCCL" || library == "xCCL");
      test += is_library ? "" : (test.empty() ? "" : " ") + std::string(words[i]);
    }
    constexpr std::string_view kLatency = " Latency";
    const bool is_latency = test.ends_with(kLatency);
    PrintedTable& made = begin("OSU " + test, line);
    made.collective =
        is_latency ? collective_named_by_benchmark(test.substr(0, test.size() - kLatency.size()))
                   : std::nullopt;
    made.is_size_of_part = is_of_parts(made.collective);
    made.ranks_said = std::exchange(ranks_, 0);
    kind_.clear();
    has_other_unit_ = false;
  }

  std::string kind_;
  bool has_other_unit_ = false;  // other than microseconds
  int ranks_ = 0;                // from the latest command; 0: no command since the last table
};

//   Collective:             Allreduce
//          Count        Size                Time, us                           Bandwidth, GB/s
//                                    avg         min         max         avg         min max
//          65536 262144       76.46       72.62       82.30        6.00        6.32        5.57
class Ucc : public LogFormat {
 public:
  std::string_view name() const override { return "ucc_perftest"; }
  std::size_t heading_at(std::string_view line) const override {
    const std::size_t at = line.find("Collective:");
    const std::vector<std::string_view> words =
        words_of(at == kNoPlace ? std::string_view{} : line.substr(at));
    return words.size() == 2 ? at : kNoPlace;
  }

  void read(const LogLine& line) override {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.size() == 2 && words[0] == "Collective:") {
      begin(std::string(words[1]), line.number);
      table().is_size_of_part = is_of_parts(table().collective);
      table().is_bandwidth_loose = true;
      kind_.clear();
      has_other_unit_ = false;
      return;
    }
    if (line.text.find("Time,") != kNoPlace) {
      has_other_unit_ = line.text.find("Time, us") == kNoPlace;
    }
    if (words.size() == 2 && (words[0] == "Datatype:" || words[0] == "Reduction:")) {
      add_to_kind(kind_, words[1]);
    }
    constexpr std::size_t kLeast = 3;  // count, size, time
    if (!has_table() || words.size() < kLeast || !number_of(words[2])) {
      return;
    }
    if (words[0] == "N/A") {
      add({.line = line.number, .flaw = kBarrier});
    } else if (number_of(words[0]) && number_of(words[1])) {
      read_row(words, line.number);
    }
  }

 private:
  void read_row(const std::vector<std::string_view>& words, std::size_t line) {
    constexpr std::size_t kAll = 8;  // count, size, three times and three bandwidths
    PrintedRow row{.line = line, .bytes = *number_of(words[1]), .kind = kind_};
    row.flaw = has_other_unit_ ? kOtherUnit : "";
    row.out_of_place.us = number_of(words[2]);
    if (words.size() == kAll && *row.out_of_place.us > 0 && number_of(words[5])) {
      row.out_of_place.algbw = row.bytes / *row.out_of_place.us / 1e3;
      row.out_of_place.busbw = number_of(words[5]);
      const double factor = *row.out_of_place.busbw / std::max(*row.out_of_place.algbw, 1e-12);
      read_factor(factor);
    }
    add(std::move(row));
  }

  // Versions differ in the size that a bandwidth counts. The factor of a whole vector is always
  // below 1, or below 2 if each byte moves twice. A factor from there on belongs to one part: ranks
  // - 1.
  void read_factor(double factor) {
    const bool can_be_part =
        is_of_parts(table().collective) || table().collective == Collective::reduce_scatter;
    table().is_size_of_part = can_be_part && factor > 0.99;
    table().is_bandwidth_of_part =
        table().is_size_of_part || (table().collective == Collective::all_reduce && factor > 2);
  }

  std::string kind_;
  bool has_other_unit_ = false;  // other than microseconds
};

//   datatype: float32
//   reduction: sum
//   # Benchmarking: allreduce
//   # #processes: 2
//           #bytes  #elem_count #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]  stddev[%]
//                4            1           16         4.20         4.40         4.30       1.00
class Intel : public LogFormat {
 public:
  std::string_view name() const override { return "oneCCL or Intel MPI benchmarks"; }
  std::size_t heading_at(std::string_view line) const override {
    const std::size_t at = line.find("# Benchmarking");
    const std::size_t columns = line.find("#bytes");
    if (at != kNoPlace) {
      return at;
    }
    return columns != kNoPlace && line.find("#repetitions") != kNoPlace ? columns : kNoPlace;
  }

  void see(std::string_view line) override {
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() == 2 && words[0] == "datatype:") {
      kind_ = words[1];
    } else if (words.size() == 2 && words[0] == "reduction:") {
      add_to_kind(kind_, words[1]);
    }
  }

  void read(const LogLine& line) override {
    const std::vector<std::string_view> words = words_of(line.text);
    const auto word_behind = [&](std::string_view key) -> std::string_view {
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i].starts_with(key)) {
          const std::size_t next = i + 1 < words.size() && words[i + 1] == "=" ? i + 2 : i + 1;
          return next < words.size() ? words[next] : std::string_view{};
        }
      }
      return {};
    };
    if (const std::string_view test = word_behind("Benchmarking"); !test.empty()) {
      begin(std::string(test), line.number);
      columns_ = 0;
      // For reduce_scatter, oneCCL prints the size that a rank receives.
      const bool is_oneccl = line.text.find("Benchmarking:") != kNoPlace;
      table().is_size_of_part = is_of_parts(table().collective) ||
                                (is_oneccl && table().collective == Collective::reduce_scatter);
    } else if (const std::string_view count = word_behind("#processes");
               !count.empty() && has_table()) {
      table().ranks_said = static_cast<int>(std::clamp(number_of(count).value_or(0), 0.0, 1e6));
    } else if (!words.empty() && words[0] == "#bytes") {
      read_columns(words, line.number);
    } else if (columns_ > 0 && words.size() == columns_ && are_numbers(words)) {
      PrintedRow row{.line = line.number, .bytes = *number_of(words[0]), .kind = kind_};
      row.out_of_place.us = us_ < words.size() ? number_of(words[us_]) : std::nullopt;
      row.flaw = table().collective == Collective::barrier ? kBarrier
                 : us_ == kNoPlace                         ? "without a column t_avg[usec]"
                                                           : "";
      add(std::move(row));
    }
  }

 private:
  void read_columns(const std::vector<std::string_view>& words, std::size_t line) {
    if (!has_table()) {
      begin("", line);
    }
    columns_ = words.size();
    const auto found = std::ranges::find(words, "t_avg[usec]");
    us_ = found == words.end() ? kNoPlace : static_cast<std::size_t>(found - words.begin());
  }

  std::string kind_;
  std::size_t columns_ = 0;
  std::size_t us_ = kNoPlace;  // column of the mean time
};

}  // namespace

std::unique_ptr<LogFormat> osu_format() {
  return std::make_unique<Osu>();
}

std::unique_ptr<LogFormat> ucc_format() {
  return std::make_unique<Ucc>();
}

std::unique_ptr<LogFormat> intel_format() {
  return std::make_unique<Intel>();
}

}  // namespace unisono::network_model
