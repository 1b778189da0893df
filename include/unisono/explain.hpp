// Explanation: the algorithm that a call uses, the reason for this choice, and the cost of the
// other algorithms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono {

struct Explanation {
  // The source of the choice.
  enum class Why : std::uint8_t { call, option, profile, built_in, model, max_error };
  struct Candidate {
    std::string algorithm;  // with the parameters that differ from the defaults
    int steps = 0;
    double sent_bytes = 0;     // by the rank that sends the most
    double predicted_us = -1;  // according to the profile; below 0: unknown
    bool chosen = false;
  };
  struct Unable {
    std::string algorithm;
    std::string reason;
  };

  Collective collective = Collective::barrier;
  int ranks = 1;
  double bytes = 0;  // of a rank's input or output, whichever is larger
  std::string chosen;
  Why why = Why::built_in;
  std::string profile;                // the file, if there is one
  std::vector<Candidate> candidates;  // fastest first, if the times are known
  std::vector<Unable> unable;         // algorithms that cannot serve this call

  // Local. Returns a readable table.
  UNISONO_EXPORT std::string text() const;
};

UNISONO_EXPORT std::string_view to_string(Explanation::Why why);  // "call", "built_in", ...

}  // namespace unisono
