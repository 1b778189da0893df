// `unisono verify`: proves that a schedule is right, or reports its errors.
#include "schedule/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/asked_schedule.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/target.h"
#include "cli/text_file.h"
#include "cli/wrap.h"
#include "engine/verify_sizes.h"
#include "msccl/verify_file.h"
#include "mscclpp/json.h"
#include "mscclpp/verify_file.h"
#include "schedule/final_state.h"
#include "schedule/tree_order.h"

namespace unisono::cli {
namespace {

constexpr int kMostVerifiedRanks = 1024;
constexpr std::size_t kMostFindings = 20;

struct Checked {
  Schedule schedule;
  std::vector<unisono::Finding> findings;
  bool in_place = true;  // also right in place
};

// Returns true if each two ranks exchange equal blocks, which then lie at the same places.
bool lies_alike(const Counts& counts) {
  for (int rank = 0; rank < counts.ranks(); ++rank) {
    for (int other = 0; other < counts.ranks(); ++other) {
      if (counts.sent(rank, other) != counts.expected(rank, other)) {
        return false;
      }
    }
  }
  return true;
}

bool has_sound_structure(const std::vector<unisono::Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const unisono::Finding& finding) {
    return finding.kind == unisono::Finding::Kind::structure;
  });
}

// Returns the leaves of each rank from --leaves: one number for all ranks, or one per rank.
std::vector<int> leaves_of_ranks(const std::string& text, int ranks) {
  constexpr int kMostLeaves = 1024;
  std::vector<int> leaves;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next != end) {
    int count = 0;
    const auto [after, error] = std::from_chars(next, end, count);
    const bool goes_on = after != end && *after == ',' && after + 1 != end;
    if (error != std::errc{} || count < 1 || count > kMostLeaves || (after != end && !goes_on)) {
      break;
    }
    leaves.push_back(count);
    next = goes_on ? after + 1 : after;
  }
  if (next == end && leaves.size() == 1) {
    leaves.resize(static_cast<std::size_t>(ranks), leaves.front());
  }
  if (next != end || leaves.size() != static_cast<std::size_t>(ranks)) {
    throw UsageError(
        fmt::format("--leaves cannot be '{}' for {} rank{}", text, ranks, ranks == 1 ? "" : "s"),
        fmt::format("give one number from 1 to {} for all ranks, or one for each, "
                    "such as 4,4,3",
                    kMostLeaves),
        "unisono help verify");
  }
  return leaves;
}

// `leaves`: from --leaves; empty: the order of sums is not checked.
Checked check(Schedule schedule, const Algorithm* algorithm, const std::string& leaves) {
  Checked result{.schedule = std::move(schedule), .findings = {}, .in_place = true};
  result.findings = engine::verify_with_sizes(result.schedule);
  if (!leaves.empty()) {
    if (!reduces(result.schedule.collective) || is_scan(result.schedule.collective)) {
      throw UsageError(
          fmt::format("--leaves: {} has no tree order", to_string(result.schedule.collective)),
          "give a schedule of reduce, all_reduce or reduce_scatter", "unisono help verify");
    }
    const std::vector<int> each = leaves_of_ranks(leaves, result.schedule.ranks);
    if (has_sound_structure(result.findings)) {
      const std::vector<unisono::Finding> sums = verify_tree_order(result.schedule, each);
      result.findings.insert(result.findings.end(), sums.begin(), sums.end());
    }
  }
  if (algorithm != nullptr) {
    const std::vector<unisono::Finding> claims = verify_claims(*algorithm, result.schedule);
    result.findings.insert(result.findings.end(), claims.begin(), claims.end());
  }
  result.in_place = lies_alike(result.schedule.counts) && verify_in_place(result.schedule).empty();
  return result;
}

std::string place_of(const unisono::Finding& finding, const Schedule& schedule) {
  if (finding.line == 0) {
    return {};
  }
  const std::size_t slash = schedule.file.rfind('/');
  return fmt::format("   {}:{}",
                     slash == std::string::npos ? schedule.file : schedule.file.substr(slash + 1),
                     finding.line);
}

void print_findings(const Checked& checked, const Console& console) {
  std::size_t width = 0;
  const std::size_t shown = std::min(checked.findings.size(), kMostFindings);
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, sentence(checked.findings[i]).size());
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const unisono::Finding& finding = checked.findings[i];
    // Steps are counted from 1, as `show` does.
    const std::string step = finding.step < 0 ? "end" : fmt::format("step {}", finding.step + 1);
    const std::string place = place_of(finding, checked.schedule);
    fmt::print("  {:<7}  {:<{}}{}\n", step, sentence(finding), place.empty() ? 0 : width,
               console.paint(Paint::dim, place));
  }
  if (checked.findings.size() > shown) {
    fmt::print("  ... and {} more; --json has all\n", checked.findings.size() - shown);
  }
}

void print_counts(const Counts& counts) {
  const CountTotals totals = totals_of(counts);
  fmt::print(
      "  each rank ends with its {} block{}, in the order of ranks: {} element{} of {} byte{} in "
      "all,\n  at most {} sent (rank {}), {} received (rank {}), {} in a block\n",
      counts.ranks(), counts.ranks() == 1 ? "" : "s", totals.all, totals.all == 1 ? "" : "s",
      counts.element_bytes, counts.element_bytes == 1 ? "" : "s", totals.most_sent,
      totals.busiest_sender, totals.most_received, totals.busiest_receiver, totals.largest);
}

void print_checked(const Checked& checked, const Console& console) {
  const Schedule& schedule = checked.schedule;
  const bool right = checked.findings.empty();
  fmt::print("{}  {} rank{}{}  {} move{} in {} step{}: {}\n",
             console.paint(Paint::strong, title_of(schedule)), schedule.ranks,
             schedule.ranks == 1 ? "" : "s",
             is_rooted(schedule.collective) ? fmt::format("  root {}", schedule.root) : "",
             schedule.moves.size(), schedule.moves.size() == 1 ? "" : "s", schedule.steps,
             schedule.steps == 1 ? "" : "s",
             right ? console.paint(Paint::good, "right") : console.paint(Paint::bad, "wrong"));
  print_findings(checked, console);
  if (right && !schedule.counts.empty() && !console.quiet()) {
    print_counts(schedule.counts);
  }
  if (!right) {
    fmt::print("{} finding{}\n", checked.findings.size(), checked.findings.size() == 1 ? "" : "s");
  } else if (!checked.in_place && !console.quiet()) {
    fmt::print("  in place, the input must be copied first\n");
  }
}

nlohmann::ordered_json json_of(const Checked& checked) {
  nlohmann::ordered_json row;
  row["collective"] = to_string(called_form(checked.schedule));
  row["algorithm"] = checked.schedule.algorithm;
  row["ranks"] = checked.schedule.ranks;
  row["root"] = checked.schedule.root;
  row["moves"] = checked.schedule.moves.size();
  row["steps"] = checked.schedule.steps;
  row["right"] = checked.findings.empty();
  row["in_place"] = checked.in_place;
  if (const Counts& counts = checked.schedule.counts; !counts.empty()) {
    const CountTotals totals = totals_of(counts);
    row["counts"] = {{"element_bytes", counts.element_bytes},
                     {"elements", totals.all},
                     {"most_sent", totals.most_sent},
                     {"most_received", totals.most_received},
                     {"largest_block", totals.largest}};
  }
  if (has_sound_structure(checked.findings)) {
    row["final_state"] = final_state_text(checked.schedule);
  }
  row["findings"] = nlohmann::json::array();
  for (const unisono::Finding& finding : checked.findings) {
    row["findings"].push_back({{"kind", to_string(finding.kind)},
                               {"step", finding.step},
                               {"rank", finding.rank},
                               {"chunk", finding.chunk},
                               {"line", finding.line},
                               {"text", to_text(finding, 0)}});
  }
  return row;
}

void print_json(const nlohmann::ordered_json& rows, bool right) {
  nlohmann::ordered_json result;
  result["schema"] = "unisono.verify/1";
  result["right"] = right;
  result["schedules"] = rows;
  fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

struct Range {
  int first = 1;
  int last = 1;
};

// "4" or "1..64".
Range verified_ranks(const Arguments& arguments) {
  const std::string text = arguments.text("ranks");
  const std::size_t dots = text.find("..");
  try {
    std::size_t end = 0;
    Range range;
    range.first = std::stoi(text, &end);
    range.last = range.first;
    if (dots != std::string::npos && end == dots) {
      const std::string last = text.substr(dots + 2);
      range.last = std::stoi(last, &end);
      end += dots + 2;
    }
    if (end == text.size() && range.first >= 1 && range.last >= range.first &&
        range.last <= kMostVerifiedRanks) {
      return range;
    }
  } catch (const std::logic_error&) {
    // Not a number, or too large for one: reported below.
  }
  throw UsageError(
      fmt::format("--ranks cannot be '{}'", text),
      fmt::format("give a number from 1 to {}, or a range such as 1..64", kMostVerifiedRanks),
      "unisono help verify");
}

// One algorithm for a range of ranks and every root.
struct Sweep {
  std::int64_t schedules = 0;
  std::int64_t moves = 0;
  std::vector<Checked> wrong;
};

class Verifier {
 public:
  Verifier(Range range, const AlgorithmParameters& parameters, const Arguments& arguments,
           const Console& console)
      : range_(range), parameters_(parameters), arguments_(arguments), console_(console) {}

  Sweep sweep(const Algorithm& algorithm) {
    Sweep result;
    for (int ranks = range_.first; ranks <= range_.last; ++ranks) {
      if (!can_serve(algorithm, {.ranks = ranks, .parameters = parameters_})) {
        continue;
      }
      const bool rooted = is_rooted(algorithm.collective);
      const int only =
          arguments_.has("root") ? static_cast<int>(arguments_.number("root", 0, ranks - 1)) : -1;
      for (int root = 0; root < (rooted ? ranks : 1); ++root) {
        if (rooted && only >= 0 && root != only) {
          continue;
        }
        console_.progress(fmt::format("{}/{} n={} root={}", to_string(algorithm.collective),
                                      algorithm.name, ranks, root));
        const Shape shape{.ranks = ranks, .root = root, .parameters = parameters_};
        Checked checked =
            check(build_schedule(algorithm, shape), &algorithm, arguments_.text("leaves"));
        ++result.schedules;
        result.moves += static_cast<std::int64_t>(checked.schedule.moves.size());
        if (!checked.findings.empty()) {
          result.wrong.push_back(std::move(checked));
        }
      }
    }
    console_.end_progress();
    return result;
  }

 private:
  Range range_;
  AlgorithmParameters parameters_;
  const Arguments& arguments_;
  const Console& console_;
};

int verify_sweep(std::span<const Algorithm* const> algorithms,
                 const AlgorithmParameters& parameters, const Arguments& arguments,
                 const Console& console) {
  const Range range = verified_ranks(arguments);
  Verifier verifier(range, parameters, arguments, console);
  nlohmann::ordered_json rows = nlohmann::json::array();
  std::int64_t schedules = 0;
  std::size_t wrong = 0;
  for (const Algorithm* algorithm : algorithms) {
    const Sweep sweep = verifier.sweep(*algorithm);
    schedules += sweep.schedules;
    wrong += sweep.wrong.size();
    const std::string name = fmt::format("{}/{}{}", to_string(algorithm->collective),
                                         algorithm->name, to_text(parameters));
    if (console.json()) {
      rows.push_back({{"name", name},
                      {"schedules", sweep.schedules},
                      {"moves", sweep.moves},
                      {"wrong", nlohmann::json::array()}});
      for (const Checked& checked : sweep.wrong) {
        rows.back()["wrong"].push_back(json_of(checked));
      }
      continue;
    }
    const bool right = sweep.wrong.empty();
    fmt::print("{:<34}  {:>5} schedules  {:>9} moves  {}\n", name, sweep.schedules, sweep.moves,
               right ? console.paint(Paint::good, "right")
                     : console.paint(Paint::bad, fmt::format("{} wrong", sweep.wrong.size())));
    for (std::size_t i = 0; i < sweep.wrong.size() && i < 3; ++i) {
      print_checked(sweep.wrong[i], console);
    }
    std::fflush(stdout);
  }
  if (console.json()) {
    print_json(rows, wrong == 0);
  } else {
    fmt::print("{} of {}, n {}..{}: {}\n", times(static_cast<std::size_t>(schedules), "schedule"),
               times(algorithms.size(), "algorithm"), range.first, range.last,
               wrong == 0 ? "all right" : fmt::format("{} wrong", wrong));
  }
  return wrong == 0 ? kDone : kAnswerIsNo;
}

int verify_one(Checked checked, const Console& console) {
  if (console.json()) {
    print_json(nlohmann::json::array({json_of(checked)}), checked.findings.empty());
  } else {
    print_checked(checked, console);
  }
  return checked.findings.empty() ? kDone : kAnswerIsNo;
}

int run_verify(const Arguments& arguments, const Console& console) {
  if (arguments.has("all")) {
    if (!arguments.operands().empty() || arguments.has("counts") || arguments.has("leaves")) {
      throw UsageError(
          fmt::format("--all cannot be used with {}", arguments.has("counts")   ? "--counts"
                                                      : arguments.has("leaves") ? "--leaves"
                                                                                : "a schedule"),
          {}, "unisono help verify");
    }
    return verify_sweep(catalog(), {}, arguments, console);
  }
  if (arguments.operands().empty()) {
    throw UsageError("which schedule?", "unisono verify all_reduce/ring, or unisono verify --all",
                     "unisono list");
  }
  const std::string& target = arguments.operands().front();
  if (is_schedule_file(target)) {
    for (const std::string_view option : {"ranks", "root"}) {
      if (arguments.has(option)) {
        throw UsageError(fmt::format("--{} cannot be used with a schedule file", option),
                         fmt::format("{} defines it", target), "unisono help verify");
      }
    }
    const std::string text = read_text_file(target);
    const bool is_plan = mscclpp::is_plan(text);
    if ((is_msccl_file(target) || is_plan) && arguments.has("counts")) {
      throw UsageError(fmt::format("{} has blocks of equal size", target),
                       fmt::format("a {} does not support --counts",
                                   is_plan ? "plan of MSCCL++" : "program of MSCCL"),
                       "unisono help verify");
    }
    if ((is_msccl_file(target) || is_plan) && arguments.has("leaves")) {
      throw UsageError(fmt::format("--leaves cannot be used with {}", target),
                       "the order of sums is proved for schedules of unisono",
                       "unisono help verify");
    }
    if (is_msccl_file(target)) {
      return verify_msccl(target, text, console);
    }
    if (is_plan) {
      return verify_plan(target, text, console);
    }
    return verify_one(check(asked_schedule(arguments, "verify", asked_counts(arguments)), nullptr,
                            arguments.text("leaves")),
                      console);
  }
  const Algorithm& algorithm = algorithm_of(target);
  const AlgorithmParameters parameters = parameters_of(algorithm, target);
  if (arguments.has("counts")) {
    return verify_one(check(asked_schedule(arguments, "verify", asked_counts(arguments)),
                            &algorithm, arguments.text("leaves")),
                      console);
  }
  const Range range = arguments.has("ranks") ? verified_ranks(arguments) : Range{};
  if (arguments.has("ranks") && range.first == range.last &&
      (!is_rooted(algorithm.collective) || arguments.has("root"))) {
    const int root =
        arguments.has("root") ? static_cast<int>(arguments.number("root", 0, range.first - 1)) : 0;
    const Shape shape{.ranks = range.first, .root = root, .parameters = parameters};
    return verify_one(check(build_checked(algorithm, shape), &algorithm, arguments.text("leaves")),
                      console);
  }
  const Algorithm* const chosen = &algorithm;
  return verify_sweep(std::span(&chosen, 1), parameters, arguments, console);
}

constexpr Option kVerifyOptions[] = {
    {.name = "all", .help = "Verify every algorithm of the catalogue."},
    {.name = "ranks",
     .letter = 'n',
     .value = "N",
     .help = "The number of ranks, or a range such as 1..64.",
     .fallback = "1..64"},
    {.name = "root", .value = "R", .help = "Verify only this root. Without it: every root."},
    {.name = "counts",
     .value = "FILE",
     .help = "For all_to_all_v: how much each rank sends to every other rank, one row per sender. "
             "Also proves the sizes."},
    {.name = "leaves",
     .value = "LIST",
     .help = "Also prove that every sum is the fixed tree (tree_order) over the leaves of all "
             "ranks. LIST is the number of leaves of each rank: one number for all ranks, or one "
             "per rank, such as 4,4,3."}};

}  // namespace

const Command kVerifyCommand = {
    .name = "verify",
    .summary = "prove that a schedule is right, or say where it is wrong",
    .operands = "COLLECTIVE/ALGORITHM | FILE.json | FILE.xml",
    .max_operands = 1,
    .runs_program = false,
    .examples = {{{"unisono verify my_ring.json", "Verify your own schedule."},
                  {"unisono verify all_reduce/ring -n 1..64",
                   "Verify one algorithm for many sizes."},
                  {"unisono verify --all", "Verify the whole catalogue, for every n and root."}}},
    .description =
        "Counts every rank's contribution in every chunk, searches for reads before writes and for "
        "conflicting writes, and runs the programs of all ranks over lanes that hold one segment. "
        "A catalogue entry must also keep its own claims: steps, edges, chunks sent.\n\n"
        "With --counts it also proves that both ends of each block know the same size, that no "
        "rank forwards a block of unknown size, and that each rank ends with its blocks packed in "
        "rank order.\n\n"
        "With --leaves it also proves the order of every sum, as an expression: the terms of an "
        "addition may be exchanged, but any other grouping is wrong. The algorithms named "
        "tree_order are always proved for one leaf on each rank.\n\n"
        "An XML file is an MSCCL program, and a JSON file with GPUs is an MSCCL++ plan, of unisono "
        "or another tool. They are proved as they are, for the forms that they declare (in place, "
        "out of place): every contribution counts once, there is no deadlock, and no two thread "
        "blocks access the same place in undefined order.\n\n"
        "Exit code 0: correct; 1: wrong, with the step and the source line of the move for each "
        "finding; 2: the file cannot be read as a schedule.",
    .options = kVerifyOptions,
    .run = run_verify};

}  // namespace unisono::cli
