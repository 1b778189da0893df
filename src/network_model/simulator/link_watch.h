// Detects whether messages, each at the rate that it has alone, ever meet on a link that lacks the
// bandwidth for all of them. Messages arrive in schedule order, which is not time order. A link
// keeps only the latest few messages. A message that begins before a forgotten message has ended
// counts as meeting it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unisono::network_model {

class LinkWatch {
 public:
  struct Flow {
    double begin_us = 0;
    double end_us = 0;
    double bytes_per_us = 0;
  };

  explicit LinkWatch(std::span<const double> capacities)
      : capacities_(capacities), place_(capacities.size(), kNone) {}

  // Returns true if some link may have been overloaded.
  bool have_met() const { return met_; }
  // Returns false if the link may lack bandwidth for the flow.
  bool add(int link, const Flow& flow) {
    const auto number = static_cast<std::size_t>(link);
    if (place_[number] == kNone) {
      place_[number] = static_cast<std::uint32_t>(used_.size());
      used_.emplace_back();
    }
    Used& used = used_[place_[number]];
    constexpr double kRounding = 1e-12;
    const double begins_after = flow.begin_us * (1 + kRounding);
    double sum = flow.bytes_per_us;
    for (std::size_t i = 0; i < used.count; ++i) {
      const Flow& other = used.flows[i];
      if (begins_after < other.end_us && other.begin_us * (1 + kRounding) < flow.end_us) {
        sum += other.bytes_per_us;
      }
    }
    if (sum > capacities_[number] * (1 + kRounding) || begins_after < used.forgotten_until_us) {
      met_ = true;
      return false;
    }
    used.keep(flow);
    return true;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Used {
    std::array<Flow, 8> flows = {};
    std::size_t count = 0;
    double forgotten_until_us = 0;

    void keep(const Flow& flow) {
      if (count < flows.size()) {
        flows[count++] = flow;
        return;
      }
      Flow& first = *std::min_element(
          flows.begin(), flows.end(),
          [](const Flow& one, const Flow& other) { return one.end_us < other.end_us; });
      forgotten_until_us = std::max(forgotten_until_us, first.end_us);
      first = flow;
    }
  };

  std::span<const double> capacities_;
  std::vector<std::uint32_t> place_;  // of each link in `used_`
  std::vector<Used> used_;
  bool met_ = false;
};

}  // namespace unisono::network_model
