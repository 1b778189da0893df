// Predicts the times of expert exchanges on machines, by a fit to measurements.
//
// For one mode and call, of T tokens with rows of b bytes, of which m leave each token (k in the
// low-latency mode, else the ranks that a token meets):
//
//   floor of the machine, and what begins with the work
//   + m b latency + experts of a rank * their cost
//   + the larger of what passes the links, T m b / near, and what the processors copy,
//     T ((m + own) b / rate + row + m each) / processors, smoothly
//   + between hosts: leaving, and the rows of other hosts / far, as a third that may be larger.
//
// `each` is what a processor needs for a row however short. Processors are the experts themselves
// in the low-latency mode, which has one for each. The floor, near, rate and each are those of a
// machine, drawn to those of the others where it has few points; the rest is shared.
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
  int ranks = 1;  // of all hosts
  ExpertShape shape = {};
  int processors = 0;  // that the normal mode may use, at least one in it
  double dispatch_us = 0;
  double combine_us = 0;
};

struct ExpertTable {
  std::vector<ExpertPoint> points = {};
  Account account = {};  // all rows are used
};

// A table with a line of names first, machine,mode,hosts,ranks,tokens,hidden,k,experts,processors,
// dispatch_us,combine_us in any order; lines that begin with # are left out. The position of a
// failure is "line 17".
Parsed<ExpertTable> parse_expert_table(std::string_view text);

class ExpertFit {
 public:
  enum class Call { dispatch, combine };

  // REQUIRES: points, all of one mode.
  ExpertFit(std::span<const ExpertPoint> points, Call call);

  // REQUIRES: a machine of the points, and their mode.
  double us(const ExpertPoint& point) const;

 private:
  struct Rows;  // what of a point the constants act on
  Rows rows_of(const ExpertPoint& point) const;
  double us_by(const Rows& rows, std::span<const double> logs) const;

  Call call_;
  std::map<std::string, std::size_t> machines_;  // their places among the constants
  std::vector<double> logs_;                     // of the constants
};

}  // namespace unisono::network_model
