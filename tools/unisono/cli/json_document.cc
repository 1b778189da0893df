#include "cli/json_document.h"

#include <fmt/format.h>

#include "cli/failure.h"

namespace unisono::cli {

void refuse_excessive_json(const std::string& path, std::string_view text) {
  if (const JsonExcess excess = json_excess(text, kDocumentLimits); !excess.message.empty()) {
    throw UsageError(fmt::format("{}, byte {}: {}", path, excess.byte, excess.message),
                     "larger documents are not read, because parsing them would fill the memory",
                     "record less at a time, such as fewer steps");
  }
}

}  // namespace unisono::cli
