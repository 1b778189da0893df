// Reading what PyTorch and NCCL left: which of the readers takes a file.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/json_document.h"
#include "imports/imports.h"
#include "imports/pickle.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

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
  if (!document.is_object()) {
    if (const std::string foreign = foreign_file(file.text); !foreign.empty()) {
      refuse_import(file.path, "it is " + foreign + ", which is not read");
    }
    refuse_import(file.path, "it is neither JSON, nor a pickle of a dict, nor a log of NCCL");
  }
  if (member(document, "traceEvents").is_array()) {
    return read_kineto(document, file.path);
  }
  if (member(document, "entries").is_array()) {
    return read_flight_recorder(document, file.path);
  }
  refuse_import(file.path, "it has neither \"traceEvents\" nor \"entries\"");
}

}  // namespace

std::vector<ImportedRank> read_imports(const std::vector<ImportFile>& files) {
  const auto is_log = [](const ImportFile& file) {
    return !is_pickle(file.text) && !file.text.starts_with("{") && is_nccl_log(file.text);
  };
  const auto first_log = std::ranges::find_if(files, is_log);
  if (first_log != files.end()) {
    const auto other = std::ranges::find_if_not(files, is_log);
    if (other != files.end()) {
      refuse_import(other->path,
                    fmt::format("it is not a log of NCCL, and {} is one", first_log->path));
    }
    return read_nccl_logs(files);
  }
  std::vector<ImportedRank> ranks;
  std::ranges::transform(files, std::back_inserter(ranks), read_import);
  settle_groups(ranks);
  return ranks;
}

}  // namespace unisono::cli
