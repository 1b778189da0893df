#include "view/deliver.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/bytes_text.h"
#include "cli/failure.h"
#include "cli/language.h"
#include "cli/output_file.h"
#include "view/desktop.h"
#include "view/page.h"
#include "view/page_server.h"
#include "view/pipelines.h"

namespace unisono::cli {
namespace {

int serve_page(const std::string& page, const std::string& where) {
  const Parsed<tcp::Address> address = tcp::Address::parse(where);
  if (!address) {
    throw UsageError(fmt::format("--serve: '{}' is not an address", where), "such as 0.0.0.0:8000",
                     "unisono learn data --serve 127.0.0.1:8000");
  }
  PageServer server("/", [&page](std::string_view) { return Page{.text = page}; }, *address.value);
  fmt::print("http://{}/  {}: press Ctrl-C to stop\n", server.address().text(),
             format_bytes(page.size()));
  std::fflush(stdout);
  for (;;) {
    server.serve(-1);
  }
}

}  // namespace

int deliver_page(nlohmann::ordered_json data, const std::string& name, const Arguments& arguments,
                 const Console& console) {
  data["format"] = "unisono.view/1";
  data["version"] = UNISONO_VERSION;
  if (arguments.has("lang")) {
    data["lang"] = arguments.text("lang");
  } else if (asked_language() == Language::chinese) {
    data["lang"] = "zh";
  }
  data["catalogue"] = catalogue_data();
  data["pipelines"] = pipelines_data();
  const std::string page = page_with(data);
  if (arguments.has("serve")) {
    if (arguments.has("output")) {
      throw UsageError("--serve cannot be used with --output", "serve the page, or write it",
                       "unisono learn data --serve 127.0.0.1:8000");
    }
    return serve_page(page, arguments.text("serve"));
  }
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
