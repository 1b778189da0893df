// Reading what PyTorch and NCCL left: which of the readers takes a file.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/json_document.h"
#include "imports/imports.h"
#include "imports/pickle.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

// Returns how many bytes of a text that is not JSON begin as JSON does; 0: all of it, but a number
// is beyond a double.
std::size_t bytes_of_json(const std::string& text) {
  try {
    [[maybe_unused]] const json whole = json::parse(text);
    return text.size();
  } catch (const json::parse_error& error) {
    return error.byte;
  } catch (const json::exception&) {
    return 0;
  }
}

bool is_list_of_events(const json& document) {
  return document.is_array() && !document.empty() && member(document.front(), "ph").is_string();
}

[[noreturn]] void refuse_document(const ImportFile& file, const json& document) {
  const std::size_t first = file.text.find_first_not_of(" \t\r\n");
  if (document.is_discarded() && first != std::string::npos && file.text[first] == '{') {
    const std::size_t bytes = bytes_of_json(file.text);
    refuse_import(file.path,
                  bytes == 0 ? "its JSON has a number beyond a double"
                  : bytes >= file.text.size()
                      ? "its JSON is truncated: the program ended before it had written everything"
                      : fmt::format("its JSON is not valid at byte {}", bytes));
  }
  if (const std::string foreign = foreign_file(file.text); !foreign.empty()) {
    refuse_import(file.path, "it is " + foreign + ", which is not supported");
  }
  refuse_import(file.path, "it is neither JSON, nor a pickle of a dict, nor a log of NCCL");
}

ImportedRank read_import(const ImportFile& file) {
  json document;
  if (is_pickle(file.text)) {
    const Parsed<json> parsed = parse_pickle(file.text);
    if (!parsed) {
      refuse_import(file.path, parsed.position + ": " + parsed.message);
    }
    document = *parsed.value;
  } else {
    document = parse_json_document<json>(file.path, file.text);
  }
  if (is_list_of_events(document)) {  // as older profilers export
    document = json::object({{"traceEvents", std::move(document)}});
  }
  if (!document.is_object()) {
    refuse_document(file, document);
  }
  if (member(document, "traceEvents").is_array()) {
    return read_kineto(document, file.path);
  }
  // A rank that has called nothing has no entries.
  if (member(document, "entries").is_array() || member(document, "pg_config").is_object()) {
    return read_flight_recorder(document, file.path);
  }
  refuse_import(file.path, "it has neither \"traceEvents\" nor \"entries\"");
}

// Logs do not say which rank wrote them: calls of the same log twice would count twice.
void refuse_copies(const std::vector<ImportFile>& files) {
  std::map<std::string_view, std::string_view> paths;
  for (const ImportFile& file : files) {
    const auto [found, is_new] = paths.emplace(file.text, file.path);
    if (!is_new && !file.text.empty()) {
      refuse_import(file.path, fmt::format("it has the same content as {}", found->second));
    }
  }
}

}  // namespace

std::vector<ImportedRank> read_imports(const std::vector<ImportFile>& files) {
  // A job's log may begin with the output of other programs.
  const auto is_log = [](const ImportFile& file) {
    return !is_pickle(file.text) && !file.text.starts_with("{") && is_nccl_log(file.text) &&
           (file.text.find(" NCCL INFO ") != std::string::npos || foreign_file(file.text).empty());
  };
  const auto first_log = std::ranges::find_if(files, is_log);
  if (first_log != files.end()) {
    const auto other = std::ranges::find_if_not(files, is_log);
    if (other != files.end()) {
      refuse_import(other->path, fmt::format("it is not an NCCL log, but {} is", first_log->path));
    }
    refuse_copies(files);
    return read_nccl_logs(files);
  }
  std::vector<ImportedRank> ranks;
  std::ranges::transform(files, std::back_inserter(ranks), read_import);
  settle_groups(ranks);
  return ranks;
}

}  // namespace unisono::cli
