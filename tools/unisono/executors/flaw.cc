#include "executors/flaw.h"

#include <fmt/format.h>

namespace unisono::executors {

std::string to_text(const Flaw& flaw) {
  return flaw.at.gpu < 0 ? flaw.text
                         : fmt::format("GPU {}, thread block {}, step {}: {}", flaw.at.gpu,
                                       flaw.at.block, flaw.at.step, flaw.text);
}

}  // namespace unisono::executors
