// Which algorithm a call gets, why, and what the others would do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/export.hpp"
#include "unisono/types.hpp"

namespace unisono {

struct Explanation {
  // What the choice came from.
  enum class Why : std::uint8_t { call, option, profile, built_in, model, accuracy };
  struct Candidate {
    std::string algorithm;  // with those of its parameters that are not its defaults
    int steps = 0;
    double sent_bytes = 0;     // by the rank that sends most
    double predicted_us = -1;  // by the profile; below 0: it does not know
    bool chosen = false;
  };
  struct Unable {
    std::string algorithm;
    std::string reason;
  };

  Collective collective = Collective::barrier;
  int ranks = 1;
  double bytes = 0;  // the larger of what a rank sends and receives in all
  std::string chosen;
  Why why = Why::built_in;
  std::string profile;                // the file, where there is one
  std::vector<Candidate> candidates;  // fastest first as far as that is known
  std::vector<Unable> unable;         // cannot serve this call

  // A table for people.
  UNISONO_EXPORT std::string text() const;
};

UNISONO_EXPORT std::string_view to_string(Explanation::Why why);

}  // namespace unisono
