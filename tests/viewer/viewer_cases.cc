// Prints what the verifier says of every catalogue schedule with 1..N ranks, of every root, and of
// mutants of each: one JSON object a line.
//
//   viewer_cases N MUTANTS
//
// A mutant is an edit that the viewer's page can make as well: {"move": M, "drop": true}, or the
// fields of the move that change.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>

#include "algorithms/catalog.h"
#include "schedule/final_state.h"
#include "schedule/verify.h"
#include "view/pack.h"

namespace {

using nlohmann::ordered_json;
using unisono::Finding;
using unisono::Schedule;

// The findings in the form of the page's checker, and their English sentence, which both produce.
ordered_json fields(const Finding& finding) {
  ordered_json arguments = ordered_json::array();
  for (const Finding::Argument& argument : finding.arguments) {
    std::visit([&arguments](const auto& value) { arguments.push_back(value); }, argument);
  }
  return {{"kind", unisono::to_string(finding.kind)},
          {"mistake", unisono::to_string(finding.mistake)},
          {"step", finding.step},
          {"rank", finding.rank},
          {"chunk", finding.chunk},
          {"line", finding.line},
          {"arguments", arguments},
          {"text", unisono::to_text(finding)}};
}

ordered_json verdict(const Schedule& schedule) {
  ordered_json list = ordered_json::array();
  bool structure = true;
  for (const Finding& finding : unisono::verify(schedule)) {
    structure = structure && finding.kind != Finding::Kind::structure;
    list.push_back(fields(finding));
  }
  ordered_json result = {{"findings", list}};
  if (structure) {
    result["state"] = unisono::final_state_text(schedule);
  }
  return result;
}

// Changes one field of a random move, or drops the move.
std::pair<Schedule, ordered_json> mutate(Schedule schedule, std::mt19937& random) {
  const auto below = [&random](int end) {
    return static_cast<int>(random() % static_cast<std::uint32_t>(end));
  };
  const auto index = static_cast<std::size_t>(below(static_cast<int>(schedule.moves.size())));
  unisono::Move& move = schedule.moves[index];
  ordered_json edit = {{"move", index}};
  switch (below(6)) {
    case 0:
      schedule.moves.erase(schedule.moves.begin() + static_cast<std::ptrdiff_t>(index));
      edit["drop"] = true;
      break;
    case 1:
      edit["to"] = move.to = below(schedule.ranks);
      break;
    case 2:
      edit["from"] = move.from = below(schedule.ranks);
      break;
    case 3:
      edit["chunk"] = move.chunk = below(schedule.chunks);
      break;
    case 4:
      move.combine = move.combine == unisono::Combine::reduce ? unisono::Combine::replace
                                                              : unisono::Combine::reduce;
      edit["combine"] = move.combine == unisono::Combine::reduce ? "reduce" : "replace";
      break;
    default:
      move.source = static_cast<unisono::Buffer>(below(3));
      edit["source"] = move.source == unisono::Buffer::input    ? "input"
                       : move.source == unisono::Buffer::output ? "output"
                                                                : "scratch";
      break;
  }
  return {std::move(schedule), std::move(edit)};
}

void print_cases(const unisono::Algorithm& algorithm, unisono::Shape shape, int mutants,
                 std::mt19937& random) {
  const Schedule schedule = unisono::build_schedule(algorithm, shape);
  ordered_json line = unisono::cli::pack(schedule);
  line["collective"] = unisono::to_string(schedule.collective);
  line["algorithm"] = schedule.algorithm;
  line["verdict"] = verdict(schedule);
  line["mutants"] = ordered_json::array();
  for (int i = 0; i < mutants && !schedule.moves.empty(); ++i) {
    auto [mutant, edit] = mutate(schedule, random);
    line["mutants"].push_back({{"edit", edit}, {"verdict", verdict(mutant)}});
  }
  std::cout << line.dump() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const int most_ranks = argc > 1 ? std::atoi(argv[1]) : 16;
  const int mutants = argc > 2 ? std::atoi(argv[2]) : 4;
  std::mt19937 random(1);
  for (const unisono::Algorithm* algorithm : unisono::catalog()) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
      if (!unisono::can_serve(*algorithm, {.ranks = ranks})) {
        continue;
      }
      const int roots = unisono::is_rooted(algorithm->collective) ? ranks : 1;
      for (int root = 0; root < roots; ++root) {
        print_cases(*algorithm, {.ranks = ranks, .root = root}, mutants, random);
      }
    }
  }
  return 0;
}
