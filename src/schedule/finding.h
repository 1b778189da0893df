// The findings of the verifier, and of other proofs about schedules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace unisono {

// A finding is data, not text: finding_text.cc makes the English sentence from these fields, and
// the viewer makes its own sentences in English and Chinese.
struct Finding {
  using Argument = std::variant<std::int64_t, std::string>;

  enum class Kind : std::uint8_t { structure, data_flow, hazard, claim, progress, in_place, sizes };
  enum class Mistake : std::uint8_t {
    shape,
    root,
    chunk_unit,
    barrier_chunks,
    too_large,
    phase_order,
    move_ranks,
    move_chunks,
    move_step,
    writes_input,
    cannot_reduce,
    onto_itself,
    no_output,
    two_writes,
    no_input,
    reads_unwritten,
    counted_twice,
    lacks,
    has_others,
    edge,
    route,
    collective,
    name,
    steps,
    sent_by_all,
    sent_by_one,
    scratch,
    order,
    cannot_copy,
    cannot_send,
    cannot_receive,
    stale_input,
    counts_differ,
    size_unknown,
    block_place
  };
  Kind kind = Kind::structure;
  Mistake mistake = Mistake::shape;
  int step = -1;  // -1: at the end, or no step
  int rank = -1;
  int chunk = -1;
  std::uint32_t line = 0;                // source line of the move to blame, 0 unknown
  std::vector<Argument> arguments = {};  // what else the sentence of this mistake names, in order
};

std::string_view to_string(Finding::Kind kind);
std::string_view to_string(Finding::Mistake mistake);

// Returns the English sentence without the step: "rank 1 counted twice at rank 2 chunk 0".
std::string sentence(const Finding& finding);
// Returns the sentence with its step, "step 2: rank 1 counted twice ...". In text, steps are
// counted from 1.
std::string to_text(const Finding& finding, int first_step = 1);

}  // namespace unisono
