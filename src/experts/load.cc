#include "experts/load.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

namespace unisono::experts {

constexpr std::int64_t kFewestRows = 16;  // per rank, on average

std::string describe_load(const Places& places, const PhysicalExperts& physical_experts) {
  const auto sum = [](const std::vector<std::int64_t>& of) {
    return std::accumulate(of.begin(), of.end(), std::int64_t{0});
  };
  const std::vector<std::int64_t>& rows = places.rows_of_ranks;
  const auto most = std::max_element(rows.begin(), rows.end());
  const auto ranks = static_cast<std::int64_t>(rows.size());
  const bool few = sum(rows) < kFewestRows * ranks;  // uneven by chance, at no cost
  if (rows.empty() || few || 2 * *most * ranks < 3 * sum(rows)) {
    return {};
  }
  const auto rank = static_cast<std::size_t>(most - rows.begin());
  const auto choices = [&](int expert) { return places.chosen[static_cast<std::size_t>(expert)]; };
  const std::vector<int>& here = physical_experts.experts_of_rank[rank];
  const int expert = *std::max_element(here.begin(), here.end(),
                                       [&](int a, int b) { return choices(a) < choices(b); });
  std::string text =
      "rank " + std::to_string(rank) + " gets most rows, for expert " + std::to_string(expert);
  const std::int64_t times = choices(expert) * static_cast<std::int64_t>(places.chosen.size()) /
                             std::max<std::int64_t>(sum(places.chosen), 1);
  if (times >= 2) {
    text += " (over " + std::to_string(std::bit_floor(static_cast<std::uint64_t>(times))) +
            " times the mean)";
  }
  return text;
}

std::string label_with_load(const std::string& of_caller, const detail::RoutingState* routing) {
  if (routing == nullptr || routing->load.empty()) {
    return of_caller;
  }
  constexpr std::size_t kMostOfCaller = 36;  // leaves room for the load
  const std::string first =
      of_caller.empty() ? std::string() : of_caller.substr(0, kMostOfCaller) + ": ";
  return first + routing->load;
}

LoadLabel::LoadLabel(Communicator& comm, const detail::RoutingState* routing) {
  if (routing == nullptr || routing->load.empty()) {
    return;
  }
  before_ = comm.label();
  comm.label(label_with_load(before_, routing));
  comm_ = &comm;
}

LoadLabel::~LoadLabel() {
  if (comm_ == nullptr) {
    return;
  }
  try {
    comm_->label(before_);
  } catch (const Error&) {
    // The world has ended, so no call will use the label.
  }
}

}  // namespace unisono::experts
