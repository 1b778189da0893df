#include "view/deliver.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/bytes_text.h"
#include "cli/failure.h"
#include "cli/output_file.h"
#include "view/desktop.h"
#include "view/page.h"
#include "view/pipelines.h"

namespace unisono::cli {

int deliver_page(nlohmann::ordered_json data, const std::string& name, const Arguments& arguments,
                 const Console& console) {
  data["format"] = "unisono.view/1";
  data["version"] = UNISONO_VERSION;
  if (arguments.has("lang")) {
    data["lang"] = arguments.text("lang");
  }
  data["catalogue"] = catalogue_data();
  data["pipelines"] = pipelines_data();
  const std::string page = page_with(data);
  const std::string path = arguments.has("output") ? arguments.text("output") : name;
  if (path == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return kDone;
  }
  write_output(path, page);
  const bool opened = !arguments.has("no-open") && has_desktop() && open_on_desktop(path);
  if (console.json()) {
    const nlohmann::ordered_json result = {
        {"schema", "unisono.view_result/1"}, {"file", path}, {"opened", opened}};
    fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!console.quiet()) {
    fmt::print("{}  {}{}\n", path, format_bytes(page.size()),
               opened ? "" : ": open it in a browser");
  }
  return kDone;
}

}  // namespace unisono::cli
