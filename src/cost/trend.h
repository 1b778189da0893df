// The time of a collective on one machine, as a formula with fitted parameters.
//
// GPU libraries have several protocols for the same ring, which differ in the cost of a message, in
// bandwidth, and in whether they start with few channels. Some machines also have switches that
// reduce. The library's time is about the time of the fastest protocol. Where two protocols are
// equally fast, the library is a little faster than either, because both share the work at
// neighbouring sizes. So the trend is a soft minimum of their times, the power mean of exponent -8:
//
//   pipelined  floor + m*alpha + beta*hypot(s*S, n*ramp) + restart*(s/m)*S + gamma*r*S
//   direct     floor + m*direct_alpha + s*S*direct_beta + gamma*r*S
//   switch     floor + m'*switch_alpha + s'*S*switch_beta
//
// for a vector of S bytes on n ranks, with m messages, its share s and its reduced share r
// (work.h); m' and s' are the messages and the share of the switch. `ramp` is the size per rank
// that fills the machine: smaller sizes use fewer channels, so that the time stays flat. `restart`
// is the cost of restarting the pipeline, paid once per segment and for all ranks. The bytes s*S
// are multiplied by byte_factors, the floor and the alphas by latency_factors.
#pragma once

#include <map>

#include "cost/work.h"

namespace unisono::cost {

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

  // The cost factor of a byte by rank count, for machines with unequal links. Interpolated between
  // two counts, constant beyond them.
  std::map<int, double> byte_factors = {};

  // The cost factor of the floor and of messages by rank count, for machines whose ranks share
  // cores.
  std::map<int, double> latency_factors = {};

  double time_s(const Work& work, int ranks, double bytes) const;
};

}  // namespace unisono::cost
