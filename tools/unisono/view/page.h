// The viewer's page: one HTML file, built from viewer/ and embedded in this program, with a place
// for the data (docs/formats/view.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace unisono::cli {

// Returns the page as it was built, with a comment at the place of the data.
std::string_view empty_page();

// Returns the catalogue: each algorithm, with its schedules for 2 to 16 ranks and three roots.
nlohmann::ordered_json catalogue_data();

std::string page_with(const nlohmann::ordered_json& data);

}  // namespace unisono::cli
