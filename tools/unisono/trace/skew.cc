#include "trace/skew.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/console.h"
#include "plan/plan.h"

namespace unisono::cli {
namespace {

std::string us_text(double us) {
  return time_text(us * 1e-6);
}

void print_labels(const Skew& skew, const Console& console) {
  constexpr std::size_t kMost = 10;
  if (skew.labels.empty()) {
    return;
  }
  fmt::print("{}\n", console.paint(Paint::dim, fmt::format("{:>12}  {:>6}  {:>5}  {}", "held up",
                                                           "ops", "late", "label")));
  for (std::size_t i = 0; i < std::min(skew.labels.size(), kMost); ++i) {
    const Skew::Label& label = skew.labels[i];
    fmt::print("{:>12}  {:>6}  {:>5}  {}\n", us_text(label.held_up_us), label.operations,
               label.worst < 0 ? "-" : fmt::format("{}", label.worst), label.text);
  }
  if (skew.labels.size() > kMost) {
    fmt::print("{}\n", console.paint(Paint::dim, fmt::format("{:>12}  {} more labels", "",
                                                             skew.labels.size() - kMost)));
  }
}

void print_skew(const std::string& path, const Skew& skew, const Console& console) {
  fmt::print("{}  {} operation{} that two ranks or more began\n",
             console.paint(Paint::strong, path), skew.operations, skew.operations == 1 ? "" : "s");
  if (skew.operations == 0) {
    return;  // a rank can be late only if another one came before
  }
  if (skew.ranks.empty() || skew.ranks.front().last == 0) {
    fmt::print("no rank was late: all came together, as far as their clocks can tell\n");
    return;
  }
  const Skew::Rank& worst = skew.ranks.front();
  fmt::print("{}\n",
             console.paint(
                 Paint::bad,
                 fmt::format("rank {} held up the others most, {} in all: last in {} of {}, by {}",
                             worst.rank, us_text(worst.held_up_us), worst.last, worst.operations,
                             us_text(worst.late_us))));
  if (!skew.since.empty()) {
    fmt::print("it is mostly the last since {}, {}\n", us_text(skew.since_us), skew.since);
  }
  fmt::print("{}\n", console.paint(Paint::dim,
                                   fmt::format("{:>4}  {:>6}  {:>6}  {:>10}  {:>10}  {:>12}",
                                               "rank", "ops", "last", "mean", "most", "held up")));
  for (const Skew::Rank& rank : skew.ranks) {
    fmt::print("{:>4}  {:>6}  {:>6}  {:>10}  {:>10}  {:>12}\n", rank.rank, rank.operations,
               rank.last, us_text(rank.late_us), us_text(rank.most_us), us_text(rank.held_up_us));
  }
  print_labels(skew, console);
  fmt::print("{}\n", console.paint(Paint::dim, "first to last, less than"));
  for (std::size_t k = 0; k < skew.histogram.size(); ++k) {
    if (skew.histogram[k] != 0) {
      const bool is_last = k + 1 == skew.histogram.size();
      fmt::print("{:>12}  {}\n", is_last ? "more" : fmt::format("{} us", std::uint64_t{1} << k),
                 skew.histogram[k]);
    }
  }
}

}  // namespace

void show_skew(const std::string& path, const Skew& skew, const Console& console) {
  const bool is_late = !skew.ranks.empty() && skew.ranks.front().last != 0;
  if (!console.json()) {
    print_skew(path, skew, console);
    return;
  }
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const Skew::Rank& rank : skew.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"operations", rank.operations},
                     {"last", rank.last},
                     {"late_us", rank.late_us},
                     {"most_us", rank.most_us},
                     {"held_up_us", rank.held_up_us}});
  }
  nlohmann::ordered_json labels = nlohmann::ordered_json::array();
  for (const Skew::Label& label : skew.labels) {
    labels.push_back({{"label", label.text},
                      {"operations", label.operations},
                      {"held_up_us", label.held_up_us},
                      {"late", label.worst < 0 ? nlohmann::ordered_json()
                                               : nlohmann::ordered_json(label.worst)}});
  }
  const nlohmann::ordered_json none;
  const nlohmann::ordered_json result{
      {"schema", "unisono.skew/1"},
      {"operations", skew.operations},
      {"late", is_late ? nlohmann::ordered_json(skew.ranks.front().rank) : none},
      {"since", skew.since.empty() ? none : nlohmann::ordered_json(skew.since)},
      {"since_us", skew.since.empty() ? none : nlohmann::ordered_json(skew.since_us)},
      {"ranks", std::move(ranks)},
      {"labels", std::move(labels)},
      {"histogram", skew.histogram}};
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace unisono::cli
