// Collects a value, or an error, from every rank of a communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/gather.h"
#include "unisono/communicator.hpp"
#include "unisono/error.hpp"

namespace unisono::device {

// Runs `step` on every rank. If it fails on one rank, all ranks throw that rank's error, so no rank
// waits for a rank that has given up.
template <class Step>
void together(Communicator& comm, const Step& step) {
  struct Outcome {
    std::int32_t code = -1;
    char text[508] = {};
  };
  Outcome mine;
  std::optional<Error> error;
  try {
    step();
  } catch (const Error& thrown) {
    error = thrown;
  } catch (const std::bad_alloc&) {
    error =
        Error(ErrorCode::resource, "out of memory\ncheck the limits on memory (ulimit -v, cgroup)");
  }
  if (error) {
    mine.code = static_cast<std::int32_t>(error->code());
    const std::string_view text = error->message();
    std::memcpy(mine.text, text.data(), std::min(text.size(), sizeof(mine.text) - 1));
  }
  const std::vector<Outcome> all = gather(comm, mine);
  if (error) {
    throw *error;
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].code >= 0) {
      throw Error(static_cast<ErrorCode>(all[rank].code),
                  "rank " + std::to_string(rank) + " says: " + all[rank].text,
                  {.peer = static_cast<int>(rank)});
    }
  }
}

}  // namespace unisono::device
