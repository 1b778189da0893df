#include "cli/json_document.h"

#include <fmt/format.h>

#include "cli/failure.h"

namespace unisono::cli {

void refuse_excessive_json(const std::string& path, std::string_view text) {
  if (const JsonExcess excess = json_excess(text, kDocumentLimits); !excess.message.empty()) {
    throw UsageError(
        fmt::format("{}, byte {}: {}", path, excess.byte, excess.message),
        excess.is_too_much
            ? "larger documents are not read, because parsing them would fill the memory"
            : "it is not clear which of the two values counts",
        excess.is_too_much ? "record less at a time, such as fewer steps" : "write the file again");
  }
}

}  // namespace unisono::cli
