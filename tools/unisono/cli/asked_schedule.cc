#include "cli/asked_schedule.h"

#include <fmt/format.h>

#include <utility>

#include "cli/failure.h"
#include "cli/target.h"
#include "cli/text_file.h"

namespace unisono::cli {
namespace {

constexpr const char* kCountsForm =
    "give one row per sending rank and one number per receiving rank, such as 0,5 and 3,1";

int ranks_of(const Arguments& arguments, const std::optional<Counts>& counts, int most_ranks) {
  if (!counts) {
    return static_cast<int>(arguments.number("ranks", 1, most_ranks));
  }
  const int ranks = counts->ranks();
  if (arguments.has("ranks") && arguments.text("ranks") != std::to_string(ranks)) {
    throw UsageError(fmt::format("{} ranks, but {} has counts for {}", arguments.text("ranks"),
                                 arguments.text("counts"), ranks),
                     "remove --ranks: the counts define how many there are");
  }
  if (ranks > most_ranks) {
    throw UsageError(fmt::format("{} has counts for {} ranks", arguments.text("counts"), ranks),
                     fmt::format("at most {}", most_ranks));
  }
  return ranks;
}

}  // namespace

Counts load_counts(const std::string& path) {
  const std::string text = read_text_file(path);
  Parsed<Counts> parsed = parse_counts(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     kCountsForm, "docs/formats/counts.md describes the format");
  }
  return std::move(*parsed.value);
}

std::optional<Counts> asked_counts(const Arguments& arguments) {
  return arguments.has("counts") ? std::optional(load_counts(arguments.text("counts")))
                                 : std::nullopt;
}

void give_counts(Schedule& schedule, Counts counts, const std::string& name) {
  if (schedule.collective != Collective::all_to_all) {
    throw UsageError(fmt::format("--counts needs all_to_all_v, but {} is for {}", name,
                                 to_string(schedule.collective)),
                     "such as all_to_all_v/pairwise", "unisono list all_to_all_v");
  }
  if (schedule.ranks != counts.ranks()) {
    throw UsageError(fmt::format("the counts are for {} ranks, but {} is for {}", counts.ranks(),
                                 name, schedule.ranks),
                     "give one row and one column per rank");
  }
  if (schedule.chunks % (schedule.ranks * schedule.ranks) != 0) {
    throw UsageError(fmt::format("{} has {} chunks for {} blocks", name, schedule.chunks,
                                 schedule.ranks * schedule.ranks),
                     "give each block the same number", fmt::format("unisono verify {}", name));
  }
  schedule.counts = std::move(counts);
}

Schedule asked_schedule(const Arguments& arguments, std::string_view command,
                        std::optional<Counts> counts, int most_ranks) {
  if (arguments.operands().empty()) {
    throw UsageError("which schedule?", fmt::format("unisono {} all_reduce/ring -n 4", command),
                     "unisono list");
  }
  const std::string& target = arguments.operands().front();
  if (!is_schedule_file(target)) {
    const Algorithm& algorithm = algorithm_of(target);
    const Collective collective = collective_of(target.substr(0, target.find('/')));
    if (counts && collective != Collective::all_to_all_v) {
      throw UsageError(fmt::format("--counts needs all_to_all_v, not {}", to_string(collective)),
                       algorithm.collective == Collective::all_to_all && algorithm.allows_v
                           ? fmt::format("did you mean all_to_all_v/{}?", algorithm.name)
                           : "such as all_to_all_v/pairwise",
                       "unisono list all_to_all_v");
    }
    const int ranks = ranks_of(arguments, counts, most_ranks);
    const int root = arguments.text("root").empty()
                         ? 0
                         : static_cast<int>(arguments.number("root", 0, ranks - 1));
    Schedule schedule = build_checked(
        algorithm, {.ranks = ranks, .root = root, .parameters = parameters_of(algorithm, target)});
    if (counts) {
      give_counts(schedule, std::move(*counts), target);
    }
    return schedule;
  }
  for (const std::string_view option : {"ranks", "root"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} cannot be used with a schedule file", option),
                       fmt::format("{} defines it", target),
                       fmt::format("unisono help {}", command));
    }
  }
  Schedule schedule = load_schedule(target);
  if (counts) {
    give_counts(schedule, std::move(*counts), target);
  }
  return schedule;
}

}  // namespace unisono::cli
