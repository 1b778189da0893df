// The exchange of information at the beginning of a call: that all ranks make the same call, where
// their memory is, and which mistakes they have found. A mistake of one rank ends the call on all
// ranks with the same error.
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
  std::uint32_t is_wrong = 0;  // this rank will report a mistake
  std::uint64_t routing = 0;
  std::uint32_t parts = 0;
  std::uint64_t options = 0;  // a hash
  std::uint64_t own = 0;      // may differ between ranks
  std::uint64_t part_bytes[kMaxPayloads] = {};
  std::uint32_t part_forms[kMaxPayloads] = {};  // PartForm::bits()
  std::uint64_t named[kMaxPayloads] = {};       // bytes in the named memory
  SharedPlace names[kMaxPayloads] = {};
};

struct Mistake {
  ErrorCode code = ErrorCode::usage;
  std::string text = {};  // the error and, on a line of its own, the advice; empty: no mistake
};

// Throws the mistake of the lowest rank that has one, on all ranks. `any`, the same on all ranks,
// says whether a rank has one.
void throw_if_any(Communicator& comm, bool any, const Mistake& mine, const char* call);

// As above, after asking all ranks whether one has a mistake.
void agree(Communicator& comm, const Mistake& mine, const char* call);

// Returns the call headers of all ranks, by rank. Throws on all ranks the mistake of one, or
// mismatch if they make different calls. `options`: those of an exchange that is being made, to
// report the difference.
std::vector<CallHeader> open(Communicator& comm, CallHeader mine, const Mistake& mistake,
                             const ExpertExchangeOptions* options = nullptr);

}  // namespace unisono::experts
