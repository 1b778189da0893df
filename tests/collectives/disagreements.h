// Ranks that disagree on one call, drawn at random: the call of each rank, and the next call.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "case.h"
#include "draw_case.h"
#include "unisono/call.hpp"

namespace unisono::testing {

// The field in which the calls differ. With the last two, a message between two ranks differs
// instead.
enum class Field : std::uint8_t {
  nothing,  // only arguments that each rank may choose
  collective,
  dtype,
  op,
  factor,
  count,
  root,
  counts,
  algorithm,
  max_error,
  parts,  // the calls that group() combines
  calls,  // one rank makes one more call
  bytes,
  tag,
};
constexpr std::array kFields = {"nothing", "collective", "dtype",  "op",        "factor",
                                "count",   "root",       "counts", "algorithm", "max_error",
                                "parts",   "calls",      "bytes",  "tag"};
enum class Then : std::uint8_t { leave, collective, exchange, message, group, split };
constexpr std::array kThens = {"leave",   "a collective", "an exchange", "messages one way",
                               "a group", "a split"};

// A call: a case, and the arguments that a case does not have.
struct Made {
  Case one;
  double factor = 1;  // times the factor of the case
  double max_error = kInheritedMaxError;
  std::size_t cut = 0;  // split into two calls in group(), of this many elements and the rest
  int more = -1;        // a v-form: this rank's part has one element more,
  int less = -1;        // and this rank's part one element less

  bool moves_nothing() const;
  // False if the oracle knows only the case, not the call.
  bool has_oracle() const { return factor == 1 && max_error < 0 && cut == 0 && more < 0; }
};

struct Disagreement {
  int ranks = 2;
  int members = 2;  // the first ranks, whose group disagrees
  Field field = Field::nothing;
  Made common;
  std::map<int, Made> others;  // by rank
  Then then = Then::leave;
  Case next;
  std::uint64_t own = 0;  // seed of the arguments that each rank may choose

  const Made& of(int rank) const;
  bool is_message() const { return field == Field::bytes || field == Field::tag; }
  int sender() const { return others.begin()->first; }
  int receiver() const { return (sender() + 1) % members; }
  bool has_registered_memory() const;
  // True if the disagreement cannot be detected: no call moves a byte.
  bool moves_nothing() const;
  // True if each rank's result depends on all ranks, so no rank may return from its call.
  bool ends_all_in_the_call() const;
};

Disagreement draw_disagreement(std::uint64_t seed);
std::string to_text(const Disagreement& trial);
// Returns the call of `rank`, which draws its own choices itself.
Case as_made_by(int rank, const Case& one, std::uint64_t own);

}  // namespace unisono::testing
