// The property of any bytes given to the parser of MSCCL programs.
#pragma once

#include <string>
#include <string_view>

#include "as_schedule.h"
#include "msccl/check.h"
#include "msccl/export.h"
#include "msccl/xml.h"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure.
inline std::string msccl_property(std::string_view text) {
  const Parsed<msccl::MscclProgram> parsed = msccl::parse_xml(text);
  if (!parsed) {
    return parsed.message.empty() ? "refused without a message" : "";
  }
  const std::string written = msccl::to_xml(*parsed.value);
  const Parsed<msccl::MscclProgram> again = msccl::parse_xml(written);
  if (!again) {
    return "not read back: " + again.position + ": " + again.message;
  }
  if (msccl::to_xml(*again.value) != written) {
    return "not the same when read back";
  }
  constexpr std::size_t kMost = 1 << 16;  // with more, a proof takes long
  if (written.size() > kMost) {
    return "";
  }
  const msccl::Proof proof = msccl::check(*parsed.value);
  for (const executors::Flaw& flaw : proof.flaws) {
    if (to_text(flaw).empty()) {
      return "a flaw without words";
    }
  }
  return proof.flaws.empty() ? as_schedule([&] { return msccl::to_schedule(*parsed.value); }) : "";
}

}  // namespace unisono::fuzz
