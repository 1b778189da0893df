// The English texts of findings: one sentence per kind of mistake. {rank} and {chunk} stand for
// these fields of the finding, {0}, {1} and so on for its arguments, and {all} for all arguments.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "schedule/finding.h"

namespace unisono {
namespace {

struct Words {
  Finding::Mistake mistake;
  std::string_view name;
  std::string_view sentence;
};

using Mistake = Finding::Mistake;

constexpr std::array kWords = {
    Words{Mistake::shape, "shape", "shape: {0} ranks, {1} chunks, {2} steps"},
    Words{Mistake::root, "root", "shape: root {0} of {1} ranks"},
    Words{Mistake::chunk_unit, "chunk_unit", "shape: {0} chunks are not a multiple of {1}"},
    Words{Mistake::barrier_chunks, "barrier_chunks", "shape: a barrier has 1 chunk, not {0}"},
    Words{Mistake::too_large, "too_large",
          "shape: more than 2^28 chunks are moved: too large to verify"},
    Words{Mistake::phase_order, "phase_order",
          "phase {0}: first step {1} is out of order or beyond the {2} steps"},
    Words{Mistake::move_ranks, "move_ranks", "move {0}->{1}: there are {2} ranks"},
    Words{Mistake::move_chunks, "move_chunks", "move {0}->{1}: chunks {2}+{3} of {4}"},
    Words{Mistake::move_step, "move_step",
          "move {0}->{1}: step is out of order or beyond the {2} steps"},
    Words{Mistake::writes_input, "writes_input", "move {0}->{1} writes the input"},
    Words{Mistake::cannot_reduce, "cannot_reduce", "move {0}->{1} reduces, but {2} does not"},
    Words{Mistake::onto_itself, "onto_itself", "move {0}->{1} moves cells onto themselves"},
    Words{Mistake::no_output, "no_output", "rank {rank} has no output chunk {0}"},
    Words{Mistake::two_writes, "two_writes",
          "two moves write the {0} of rank {rank} chunk {chunk}"},
    Words{Mistake::no_input, "no_input",
          "rank {rank} reads chunk {chunk} of its input, which it has not"},
    Words{Mistake::reads_unwritten, "reads_unwritten",
          "rank {rank} reads chunk {chunk} of its {0}, which nobody wrote"},
    Words{Mistake::counted_twice, "counted_twice",
          "rank {0} counted twice at rank {rank} chunk {chunk}"},
    Words{Mistake::lacks, "lacks", "chunk {chunk} lacks {ranks} {all} on rank {rank}"},
    Words{Mistake::has_others, "has_others",
          "chunk {chunk} has {ranks} {all} on rank {rank}, which it must not have"},
    Words{Mistake::edge, "edge", "edge {0}->{1} is not an edge of {2}"},
    Words{Mistake::route, "route", "chunk {chunk} does not go {0}->{1} in {2}"},
    Words{Mistake::collective, "collective", "claim: collective is {0}, not {1}"},
    Words{Mistake::name, "name", "claim: {0} is not a name of {1}"},
    Words{Mistake::steps, "steps", "claim: {0} steps, not {1}"},
    Words{Mistake::sent_by_all, "sent_by_all", "claim: {0} chunks sent by all ranks, not {1}"},
    Words{Mistake::sent_by_one, "sent_by_one", "claim: {0} chunks sent by one rank, not {1}"},
    Words{Mistake::scratch, "scratch", "claim: {0} chunks in scratch of one rank, not {1}"},
    Words{Mistake::order, "order",
          "claim: chunk {chunk} on rank {rank} is {0}, not the tree over {1} leaves"},
    Words{Mistake::cannot_copy, "cannot_copy",
          "rank {rank} cannot copy chunk {chunk}: waits for ever with one message a lane"},
    Words{Mistake::cannot_send, "cannot_send",
          "rank {rank} cannot send chunk {chunk} to rank {0}: waits for ever with one message a "
          "lane"},
    Words{Mistake::cannot_receive, "cannot_receive",
          "rank {rank} cannot receive chunk {chunk} from rank {0}: waits for ever with one message "
          "a lane"},
    Words{Mistake::stale_input, "stale_input",
          "rank {rank} reads its input chunk {chunk}, whose place output chunk {0} took in step "
          "{1}"},
    Words{Mistake::counts_differ, "counts_differ",
          "rank {0} sends {2} to rank {1}, which expects {3}"},
    Words{Mistake::size_unknown, "size_unknown",
          "rank {rank} takes part in the block {0}->{1}, whose size only these two know"},
    Words{Mistake::block_place, "block_place",
          "the block {0}->{1} begins at byte {2} of rank {rank}, not at {3}"}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i].mistake != static_cast<Mistake>(i)) {
      return false;
    }
  }
  return kWords.size() == static_cast<std::size_t>(Mistake::block_place) + 1;
}
static_assert(is_in_order(), "each mistake has its words, in the order of the enumeration");

const Words& words_of(Mistake mistake) {
  return kWords[static_cast<std::size_t>(mistake)];
}

std::string text_of(const Finding::Argument& argument) {
  const auto* const number = std::get_if<std::int64_t>(&argument);
  return number != nullptr ? std::to_string(*number) : std::get<std::string>(argument);
}

std::string value_of(const Finding& finding, std::string_view name) {
  if (name == "rank") {
    return std::to_string(finding.rank);
  }
  if (name == "chunk") {
    return std::to_string(finding.chunk);
  }
  if (name == "ranks") {
    return finding.arguments.size() == 1 ? "rank" : "ranks";
  }
  if (name == "all") {
    std::string list;
    for (const Finding::Argument& argument : finding.arguments) {
      list += (list.empty() ? "" : " ") + text_of(argument);
    }
    return list;
  }
  return text_of(finding.arguments.at(static_cast<std::size_t>(name.front() - '0')));
}

}  // namespace

std::string_view to_string(Finding::Kind kind) {
  constexpr std::string_view kNames[] = {"structure", "data_flow", "hazard",
                                         "claim",     "progress",  "in_place"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Finding::Mistake mistake) {
  return words_of(mistake).name;
}

std::string sentence(const Finding& finding) {
  std::string text;
  std::string_view rest = words_of(finding.mistake).sentence;
  for (std::size_t open = rest.find('{'); open != rest.npos; open = rest.find('{')) {
    const std::size_t close = rest.find('}');
    text += rest.substr(0, open);
    text += value_of(finding, rest.substr(open + 1, close - open - 1));
    rest.remove_prefix(close + 1);
  }
  text += rest;
  const bool waits_in_place =
      finding.kind == Finding::Kind::in_place && finding.mistake != Mistake::stale_input;
  return waits_in_place ? text + ", in place" : text;
}

std::string to_text(const Finding& finding, int first_step) {
  if (finding.step >= 0) {
    return "step " + std::to_string(finding.step + first_step) + ": " + sentence(finding);
  }
  return finding.mistake == Mistake::lacks || finding.mistake == Mistake::has_others
             ? "end: " + sentence(finding)
             : sentence(finding);
}

}  // namespace unisono
