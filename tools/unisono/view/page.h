// The viewer's page: one HTML file, built from viewer/ and embedded in this program, into which the
// data is put (docs/formats/view.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace unisono::cli {

// The page as it is built: a comment stands where the data belongs.
std::string_view empty_page();

// The catalogue: what each algorithm is, and its schedules for 2..16 ranks and three roots.
nlohmann::ordered_json catalogue_data();

std::string page_with(const nlohmann::ordered_json& data);

}  // namespace unisono::cli
