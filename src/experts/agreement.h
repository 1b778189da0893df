// Exchanges information at the beginning of a call: whether all ranks make the same call, where
// their memory is, and which mistakes they have found. If one rank has found a mistake, all ranks
// throw the same error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experts/forms.h"
#include "unisono/communicator.hpp"
#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

enum class CallKind : std::uint32_t {
  exchange,
  route,
  dispatch,
  gather_list,
  end_gather,
  combine,
  combine_backward,
  mask,
  async
};
const char* to_text(CallKind kind);

struct CallHeader {
  CallKind kind = CallKind::exchange;
  std::uint32_t is_wrong = 0;  // this rank has found a mistake
  std::uint64_t routing = 0;
  std::uint32_t parts = 0;
  std::uint64_t options = 0;  // hash of the options
  std::uint64_t own = 0;      // may differ between ranks
  std::uint64_t part_bytes[kMaxPayloads] = {};
  std::uint32_t part_forms[kMaxPayloads] = {};  // PartForm::bits()
  std::uint64_t named[kMaxPayloads] = {};       // size in bytes
  SharedPlace names[kMaxPayloads] = {};
};

struct Mistake {
  ErrorCode code = ErrorCode::usage;
  std::string text = {};  // the error and, on a separate line, the advice; empty: no mistake
};

// Throws the mistake of the lowest rank that has one, on all ranks. `any`: true if any rank has a
// mistake; must be equal on all ranks.
void throw_if_any(Communicator& comm, bool any, const Mistake& mine, const char* call);

// Asks all ranks whether any has a mistake, then does the same as throw_if_any().
void agree(Communicator& comm, const Mistake& mine, const char* call);

// Returns the call headers of all ranks, by rank. If a rank has a mistake, throws it on all ranks.
// Throws Error(mismatch) if ranks make different calls. `options`: given when creating an exchange,
// to report differing options.
std::vector<CallHeader> open(Communicator& comm, CallHeader mine, const Mistake& mistake,
                             const ExpertExchangeOptions* options = nullptr);

}  // namespace unisono::experts
