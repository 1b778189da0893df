#include "record/abort.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace unisono::cli {

const HeardAbort& first_of(const std::vector<HeardAbort>& heard) {
  const auto weight = [](const HeardAbort& abort) {
    const bool timed = !std::isnan(abort.at_ns);
    return std::tuple(abort.what->reporter != abort.rank, !timed, timed ? abort.at_ns : 0.0);
  };
  return *std::min_element(heard.begin(), heard.end(),
                           [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
}

}  // namespace unisono::cli
