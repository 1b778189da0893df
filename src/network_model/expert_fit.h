// Predicts the times of expert exchanges on machines, by a fit to measurements.
//
// For one mode and call, let T be the tokens, b the bytes per row, and m the rows per token: k in
// the low-latency mode; in the normal mode, the number of ranks that hold one of the token's
// experts. The time is
//
//   the machine's floor, and costs that start with the work
//   + m b latency
//   + experts per rank * their cost
//   + the larger of the link time, T m b / near, and the copying time,
//     T ((m + own) b / rate + row + m each) / processors, smoothly
//   + between hosts: a constant. The time of the rows of other hosts, their bytes / far, is then a
//     third term of the maximum.
//
// `each` is a processor's time for a row of any length. In the low-latency mode each expert is a
// processor. The floor, near, rate and each belong to one machine. If a machine has few points,
// these values are drawn to the values of the other machines. All other constants are shared.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/account.h"
#include "base/parsed.h"
#include "network_model/expert_traffic.h"

namespace unisono::network_model {

struct ExpertPoint {
  std::string machine = {};
  ExpertMode mode = ExpertMode::low_latency;
  int hosts = 1;
  int ranks = 1;  // on all hosts together
  ExpertShape shape = {};
  int processors = 0;  // limit in the normal mode, where it is at least 1
  double dispatch_us = 0;
  double combine_us = 0;
};

struct ExpertTable {
  std::vector<ExpertPoint> points = {};
  Account account = {};  // all rows are used
};

// Parses a table whose first line names the columns:
// machine,mode,hosts,ranks,tokens,hidden,k,experts,processors, dispatch_us,combine_us in any order.
// Lines that begin with # are comments. The position of a failure is "line 17".
Parsed<ExpertTable> parse_expert_table(std::string_view text);

class ExpertFit {
 public:
  enum class Call { dispatch, combine };

  // REQUIRES: at least one point, and all points of one mode.
  ExpertFit(std::span<const ExpertPoint> points, Call call);

  // REQUIRES: the machine of one of the points, and their mode.
  double us(const ExpertPoint& point) const;

 private:
  struct Rows;  // the properties of a point that the constants multiply
  Rows rows_of(const ExpertPoint& point) const;
  double us_by(const Rows& rows, std::span<const double> logs) const;

  Call call_;
  std::map<std::string, std::size_t> machines_;  // index of each machine's first constant
  std::vector<double> logs_;                     // logarithms of the constants
};

}  // namespace unisono::network_model
