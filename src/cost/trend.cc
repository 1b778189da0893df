#include "cost/trend.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace unisono::cost {
namespace {

double factor_at(const std::map<int, double>& factors, int ranks) {
  const auto above = factors.lower_bound(ranks);
  if (factors.empty()) {
    return 1;
  }
  if (above == factors.end() || above == factors.begin() || above->first == ranks) {
    return above == factors.end() ? factors.rbegin()->second : above->second;
  }
  const auto below = std::prev(above);
  const double place = std::log(static_cast<double>(ranks) / below->first) /
                       std::log(static_cast<double>(above->first) / below->first);
  return std::pow(below->second, 1 - place) * std::pow(above->second, place);
}

// Returns the power that the soft minimum uses.
double eighth_power(double x) {
  const double fourth = x * x * x * x;
  return fourth * fourth;
}

}  // namespace

double Trend::time_s(const Work& work, int ranks, double bytes) const {
  const double latency = factor_at(latency_factors, ranks);
  const double start = latency * floor_s;
  if (work.messages <= 0) {
    return start;
  }
  const double messages = latency * work.messages;
  const double sent = work.share * bytes * factor_at(byte_factors, ranks);
  const double reduced = gamma_s_per_byte * work.reduced * bytes;
  const double pipelined = start + messages * alpha_s +
                           beta_s_per_byte * std::hypot(sent, ranks * ramp_bytes) +
                           restart_s_per_byte * sent / work.messages + reduced;
  const double direct = start + messages * direct_alpha_s + sent * direct_beta_s_per_byte + reduced;
  const double in_switch = start + latency * work.switch_messages * switch_alpha_s +
                           work.switch_share * bytes * switch_beta_s_per_byte;
  const bool can_switch = has_switch && work.switch_messages > 0;
  const double least =
      can_switch ? std::min({pipelined, direct, in_switch}) : std::min(pipelined, direct);
  double sum = eighth_power(least / pipelined) + eighth_power(least / direct);
  if (can_switch) {
    sum += eighth_power(least / in_switch);
  }
  return least / std::sqrt(std::sqrt(std::sqrt(sum)));
}

}  // namespace unisono::cost
