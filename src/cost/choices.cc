#include "cost/choices.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace unisono::cost {
namespace {

constexpr double kFarthest = 2;  // largest ratio between rank counts

// Returns the ratio of two rank counts. Equal ratios compare as equal, such as 4:6 and 6:9.
double distance(int a, int b) {
  return static_cast<double>(std::max(a, b)) / std::min(a, b);
}

template <typename Row>
void sort_rows(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.collective, a.ranks, a.from_bytes) <
           std::tie(b.collective, b.ranks, b.from_bytes);
  });
}

template <typename Row>
const Row* find_row(const std::vector<Row>& rows, Collective collective, int ranks, double bytes) {
  const Row* found = nullptr;
  double nearest = std::numeric_limits<double>::infinity();
  for (const Row& row : rows) {
    if (row.collective != collective) {
      continue;
    }
    const double away = distance(row.ranks, ranks);
    if (away > kFarthest) {
      continue;
    }
    const bool nearer = found == nullptr || (row.ranks != found->ranks && away < nearest);
    if (nearer || (row.ranks == found->ranks && row.from_bytes <= bytes)) {
      found = &row;
      nearest = away;
    }
  }
  return found;
}

}  // namespace

Choices::Choices(std::vector<Choice> rows, std::vector<WaitChoice> waits,
                 std::vector<ThreadChoice> threads)
    : rows_(std::move(rows)), waits_(std::move(waits)), threads_(std::move(threads)) {
  sort_rows(rows_);
  sort_rows(threads_);
}

const Choice* Choices::find(Collective collective, int ranks, double bytes) const {
  return find_row(rows_, collective, ranks, bytes);
}

const ThreadChoice* Choices::find_threads(Collective collective, int ranks, double bytes) const {
  return find_row(threads_, collective, ranks, bytes);
}

const WaitChoice* Choices::find_wait(int ranks, bool oversubscribed) const {
  const WaitChoice* found = nullptr;
  for (const WaitChoice& row : waits_) {
    if (row.oversubscribed == oversubscribed &&
        (found == nullptr || distance(row.ranks, ranks) < distance(found->ranks, ranks))) {
      found = &row;
    }
  }
  return found;
}

}  // namespace unisono::cost
