// Merges the output of the ranks into one stream of whole lines.
//
// A line waits for a short time. If other ranks print the same line in that time, it is printed
// once for all of them. The lines of one stream of a rank keep their order.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

enum class Stream : unsigned char { out, err };
// automatic: rank 0's stdout has no prefix until another rank writes to stdout; a job with one rank
// has no prefixes.
enum class Prefix : unsigned char { automatic, always, never };

struct OutputOptions {
  int ranks = 1;
  std::vector<std::string> hosts;  // by rank
  Prefix prefix = Prefix::automatic;
  bool out_color = false;
  bool err_color = false;
  bool out_is_terminal = false;
  bool json = false;
  std::vector<bool> shown;  // by rank; empty: all
};

class OutputMerger {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit OutputMerger(OutputOptions options);

  void add(int rank, Stream stream, std::string_view bytes, Time now);
  // Ends the stream: the rest of its last line is printed as a line.
  void finish(int rank, Stream stream, Time now);
  // Prints the lines that have waited long enough.
  void flush_due(Time now);
  void flush_all();
  std::optional<Time> next_due() const;

  // Returns the last lines that the rank wrote to stderr.
  const std::deque<std::string>& tail(int rank) const;
  // Returns true if these lines are among the last printed ones, so that a reader has seen them.
  bool shows_tail(int rank) const;

 private:
  struct Entry {
    std::string text;
    Stream stream = Stream::out;
    std::vector<int> ranks;
    Time since;
  };
  struct Lane {  // one stream of one rank
    std::string partial;
    Time since;
  };

  Lane& lane(int rank, Stream stream);
  void add_line(int rank, Stream stream, std::string text, Time now);
  void print_front();
  void print_prompt(Time now);
  bool is_plain(const Entry& entry) const;
  std::string prefix_of(const Entry& entry) const;

  OutputOptions options_;
  std::deque<Entry> waiting_;
  std::deque<Entry> recent_;         // entries that were printed last, as lines
  std::uint64_t printed_ = 0;        // entries that have left `waiting_`
  std::vector<std::uint64_t> last_;  // by lane: 1 + number of its last entry
  std::vector<Lane> lanes_;          // by 2 * rank + stream
  std::vector<std::deque<std::string>> tails_;
  bool others_wrote_ = false;  // a rank other than 0 has written to stdout
};

}  // namespace unisono::cli
