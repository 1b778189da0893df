// One case of a collective as data, and as a line of text:
//
//   all_reduce ring n=7 dtype=f32 op=sum count=13 inplace
//
// The first word is the collective, the second the algorithm (`auto`: the library's choice; `*` in
// a case file: every one of the catalogue that serves). A key may have several values, separated by
// commas: the line then stands for all combinations.
//
//   n=1,2,3          ranks
//   dtype= op=       as in the library; `all`: every one that is defined
//   root=            a rank; `all`, `last`
//   count=           elements of the vector, or of one part
//   inplace[=0,1]    input and output are the same memory
//   gaps[=0,1]       v-forms: the parts lie with gaps, in reverse order
//   memory=          private, allocated, adopted
//   call=            run, async, plan, plan_async
//   skew=            bytes by which the buffers are misaligned
//   seed=            what the values (and the counts of v-forms) follow from
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/types.hpp"

namespace unisono::testing {

enum class Memory : std::uint8_t { plain, allocated, adopted };
enum class Form : std::uint8_t { run, async, plan, plan_async };

struct Case {
  Collective collective = Collective::all_reduce;
  std::string algorithm = {};  // empty: the library's choice
  int ranks = 1;
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::size_t count = 0;
  bool in_place = false;
  bool gaps = false;
  Memory memory = Memory::plain;
  Form form = Form::run;
  std::size_t skew = 0;
  std::uint64_t seed = 1;
};

// Returns the cases of a line; none for an empty line or a comment. Throws std::runtime_error.
std::vector<Case> parse_cases(std::string_view line);
std::string to_line(const Case& test_case);

// Returns true if a reduction is defined: an independent statement of the table.
bool defined(Collective collective, Dtype dtype, ReduceOp op);
bool has_op(Collective collective);
bool has_root(Collective collective);
bool is_v(Collective collective);
bool is_vector(Collective collective);  // true if `count` is the length of the whole vector

}  // namespace unisono::testing
