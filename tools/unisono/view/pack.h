// Packs schedules for the viewer's page (docs/formats/view.md): each column of the moves is stored
// as runs of equal differences, because schedules are regular.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "schedule/schedule.h"

namespace unisono::cli {

// {"ranks", "root", "chunks", "steps", "phases", "moves"}; `moves` is base64.
nlohmann::ordered_json pack(const Schedule& schedule);

}  // namespace unisono::cli
