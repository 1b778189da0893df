#include "select/across_hosts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/catalog.h"
#include "cost/shapes.h"

namespace unisono::comm {
namespace {

// Typical values: several system calls per message, and 25 Gbit/s between hosts, shared by the
// ranks on each host. The choice needs only the order of magnitude between inside and outside.
constexpr cost::HostsNetwork kNetwork{.overhead_us = 2,
                                      .inside_us = 0.5,
                                      .inside_bytes_per_us = 8000,
                                      .between_us = 8.5,
                                      .between_bytes_per_us = 3000};
constexpr double kReducedBytesPerUs = 25'000;
// A longer vector does not stay in the cache: one pass over it then costs more than reducing only a
// part of it saves. Measured between two ranks on the loopback device.
constexpr double kCachedBytes = 8 << 20;
// A rank of an all_to_all posts its parts one after the other without waiting for each to arrive.
// So this many parts take only the time of one part. Measured: algorithms that send fewer but
// longer messages take 1.2 to 1.4 times as long for four ranks on two cores. If all ranks get the
// same data, sending it round by round is at least as fast.
constexpr int kPostedAtOnce = 4;
// Skips algorithms that would need more simulated messages.
constexpr double kMostMessages = 20'000;
constexpr double kRounding = 1e-12;  // smaller relative differences are ties

// Returns the same power for all sizes up to the next power of two.
int power_of(double bytes) {
  return bytes <= 1 ? 0 : static_cast<int>(std::ceil(std::log2(bytes)));
}

double gamma_of(double bytes) {
  return bytes <= kCachedBytes ? 1 / kReducedBytesPerUs : 0;
}

}  // namespace

AcrossHosts::AcrossHosts(const Hosts& hosts, std::span<const int> members) {
  for (const int member : members) {
    host_of_.push_back(hosts.host(member));
  }
  several_ = std::any_of(host_of_.begin(), host_of_.end(),
                         [&](int host) { return host != host_of_.front(); });
  if (several_) {
    time_.emplace(kNetwork, host_of_);
  }
}

const std::string& AcrossHosts::choose(Collective collective, double bytes, bool rank_order) {
  const int power = power_of(bytes);
  const auto [entry, fresh] = chosen_.try_emplace({collective, power, rank_order});
  if (fresh) {
    entry->second = find_fastest(collective, std::exp2(power), rank_order);
  }
  return entry->second;
}

std::string AcrossHosts::find_fastest(Collective collective, double bytes, bool rank_order) const {
  const cost::HostsOptions options{
      .gamma_us_per_byte = gamma_of(bytes),
      .at_once = collective == Collective::all_to_all ? kPostedAtOnce : 1,
      .most_messages = kMostMessages};
  const Shape usual{.ranks = static_cast<int>(host_of_.size())};
  std::string fastest;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != collective || (rank_order && !algorithm->rank_order) ||
        !can_serve(*algorithm, usual)) {
      continue;
    }
    for (const Shape& shape : cost::shapes_on(host_of_, *algorithm, usual)) {
      const std::optional<double> us = time_->time_us(*algorithm, shape, bytes, options);
      if (us.has_value() && *us < least * (1 - kRounding)) {
        least = *us;
        fastest = full_name(*algorithm, shape);
      }
    }
  }
  return fastest;
}

const cost::EncodedAlgorithm* AcrossHosts::choose_encoded(const cost::EncodedCall& call,
                                                          double bytes) {
  EncodedChoices& choices = encoded_[{call.collective, call.root, call.code}];
  if (!choices.all.has_value()) {
    choices.all = cost::encoded_algorithms(call, host_of_, kMostMessages);
    std::erase_if(*choices.all, [](const auto& one) { return one.schedule == nullptr; });
  }
  const auto [entry, fresh] = choices.fastest.try_emplace(power_of(bytes), nullptr);
  if (fresh) {
    entry->second = find_fastest(*choices.all, std::exp2(power_of(bytes)));
  }
  return entry->second;
}

// Ties go to the first algorithm. Returns the first algorithm if all have too many messages to
// simulate.
const cost::EncodedAlgorithm* AcrossHosts::find_fastest(
    const std::vector<cost::EncodedAlgorithm>& all, double bytes) const {
  const cost::HostsOptions options{.gamma_us_per_byte = gamma_of(bytes),
                                   .coding_us_per_byte = cost::kCodingUsPerByte,
                                   .most_messages = kMostMessages};
  const cost::EncodedAlgorithm* fastest = all.empty() ? nullptr : &all.front();
  double least = std::numeric_limits<double>::infinity();
  for (const cost::EncodedAlgorithm& one : all) {
    const std::optional<double> us = time_->time_us(*one.schedule, bytes, options);
    if (us.has_value() && *us < least * (1 - kRounding)) {
      least = *us;
      fastest = &one;
    }
  }
  return fastest;
}

}  // namespace unisono::comm
