// What is wrong with a recorded run, and with the recording, in words.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "record/merge.h"

namespace unisono::cli {

// First what the ranks said themselves, or where the job was stopped, why it did not go on; last
// what is only about the recording. As docs/formats/trace.md says.
nlohmann::ordered_json findings_of(const std::vector<RankRecord>& records, const Timeline& timeline,
                                   const JobEnd& end, std::size_t most_rows);
// Why each world ended that did not in good order.
nlohmann::ordered_json aborts_of(const Timeline& timeline);

}  // namespace unisono::cli
