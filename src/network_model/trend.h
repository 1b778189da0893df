// The time of a collective on one machine as a formula with fitted parameters.
//
// GPU libraries have several protocols for the same ring, which differ in what a message costs and
// in bandwidth, and in whether they start with few channels; and switches that reduce. The library
// takes about the fastest, and where two are equally fast it is a little faster than either (they
// share the work of their neighbours' sizes), so the trend is their soft minimum, the power mean of
// exponent -8:
//
//   pipelined  floor + m*alpha + beta*hypot(s*S, n*ramp) + restart*(s/m)*S + gamma*r*S
//   direct     floor + m*direct_alpha + s*S*direct_beta + gamma*r*S
//   switch     floor + m'*switch_alpha + s'*S*switch_beta
//
// for a vector of S bytes on n ranks, with m messages, share s and reduced share r of it (work.h).
// `ramp` is what each rank has to have to fill the machine: below, fewer channels work, so that
// time stays flat. `restart` is paid once per segment and all ranks, by a pipeline that starts
// anew. s*S counts byte_factor times, floor and alphas latency_factor times.
#pragma once

#include <map>
#include <span>

#include "network_model/work.h"

namespace unisono::network_model {

struct Trend {
  double floor_s = 0;
  double alpha_s = 0;
  double beta_s_per_byte = 0;
  double ramp_bytes = 0;
  double restart_s_per_byte = 0;
  double direct_alpha_s = 0;
  double direct_beta_s_per_byte = 0;
  double gamma_s_per_byte = 0;
  bool has_switch = false;
  double switch_alpha_s = 0;
  double switch_beta_s_per_byte = 0;

  // The additional cost of a byte by rank count, for machines with unequal links. Interpolated
  // between two counts, constant beyond them.
  std::map<int, double> byte_factors = {};

  // The same of floor and messages, for machines where ranks share cores.
  std::map<int, double> latency_factors = {};

  double time_s(const Work& work, int ranks, double bytes) const;
};

// One measurement.
struct Measured {
  Work work;
  int ranks = 1;
  double bytes = 0;
  double time_s = 0;
  double noise = 0;  // how far that may be off, in proportion
};

// The trend that is nearest to all of them in proportion, outliers counting less, and parameters
// that they say little about staying near a guess made from the quickest and the largest of them.
// Whether the switch reduces, and whether bytes cost the same among all rank counts, is asked only
// of three counts and more: with less, any curve could be a ring. With `own_latencies` every rank
// count has a latency factor. Deterministic. REQUIRES: not empty; bytes >= 0 and times > 0, all
// finite.
Trend fit_trend(std::span<const Measured> measured, bool own_latencies);

}  // namespace unisono::network_model
