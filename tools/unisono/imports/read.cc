// Selects the reader for each file of PyTorch and NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <optional>
#include <thread>

#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/json_document.h"
#include "imports/imports.h"
#include "imports/pickle.h"
#include "imports/torch_values.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

// Returns the number of leading bytes that are valid JSON in a text that is not JSON; 0: all bytes
// are valid, but a number is too large for a double.
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

// Refuses a file of another known program, and names the program.
void refuse_foreign(const ImportFile& file) {
  if (const std::string foreign = foreign_file(file.text); !foreign.empty()) {
    refuse_import(file.path, "it is " + foreign + ", which is not supported");
  }
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
  refuse_foreign(file);
  refuse_import(file.path, "it is neither JSON, nor a pickle of a dict, nor a log of NCCL");
}

ImportedRank read_import(const ImportFile& file) {
  if (!is_pickle(file.text)) {
    refuse_excessive_json(file.path, file.text);
  }
  if (std::optional<ImportedRank> dump = read_flight_recorder(file)) {
    return *std::move(dump);
  }
  json document = is_pickle(file.text) ? json::object() : json::parse(file.text, nullptr, false);
  if (is_list_of_events(document)) {  // as older profilers export
    document = json::object({{"traceEvents", std::move(document)}});
  }
  if (!document.is_object()) {
    refuse_document(file, document);
  }
  if (member(document, "traceEvents").is_array()) {
    return read_kineto(document, file.path);
  }
  refuse_foreign(file);
  refuse_import(file.path, "it has neither \"traceEvents\" nor \"entries\"");
}

// Refuses two copies of one log. A log does not contain the rank that wrote it, so its calls would
// count twice.
void refuse_copies(const std::vector<ImportFile>& files) {
  std::map<std::string_view, std::string_view> paths;
  for (const ImportFile& file : files) {
    const auto [found, is_new] = paths.emplace(file.text, file.path);
    if (!is_new && !file.text.empty()) {
      refuse_import(file.path, fmt::format("it has the same content as {}", found->second));
    }
  }
}

// Reads the files on several threads; the first file that is refused throws.
std::vector<ImportedRank> read_in_parallel(const std::vector<ImportFile>& files) {
  constexpr std::size_t kMostThreads = 4;
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1,
                                                      std::min(kMostThreads, files.size()));
  std::vector<std::future<std::vector<ImportedRank>>> parts;
  for (std::size_t i = 0; i < threads; ++i) {
    const auto begin = files.begin() + static_cast<std::ptrdiff_t>(files.size() * i / threads);
    const auto end = files.begin() + static_cast<std::ptrdiff_t>(files.size() * (i + 1) / threads);
    // The calling thread reads the last part.
    parts.push_back(
        std::async(i + 1 < threads ? std::launch::async : std::launch::deferred, [begin, end] {
          std::vector<ImportedRank> ranks;
          std::transform(begin, end, std::back_inserter(ranks), read_import);
          return ranks;
        }));
  }
  parts.back().wait();
  std::vector<ImportedRank> ranks;
  for (auto& part : parts) {
    std::ranges::move(part.get(), std::back_inserter(ranks));
  }
  return ranks;
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
  const auto of_kind = [&files](bool (*is_kind)(std::string_view), const char* kind) {
    const auto is_one = [is_kind](const ImportFile& file) { return is_kind(file.text); };
    const auto first = std::ranges::find_if(files, is_one);
    const auto other = std::ranges::find_if_not(files, is_one);
    if (first != files.end() && other != files.end()) {
      refuse_import(other->path, fmt::format("it is not {}, but {} is", kind, first->path));
    }
    return first != files.end();
  };
  if (of_kind(is_nccl_inspector, "a file of NCCL Inspector")) {
    return read_nccl_inspector(files);
  }
  if (of_kind(is_nccl_ras, "an answer of NCCL's RAS")) {
    if (files.size() > 1) {
      refuse_import(files[1].path,
                    "one output of NCCL's RAS covers all ranks: pass only the latest file");
    }
    return read_nccl_ras(files.front());
  }
  std::vector<ImportedRank> ranks =
      files.empty() ? std::vector<ImportedRank>() : read_in_parallel(files);
  settle_groups(ranks);
  return ranks;
}

}  // namespace unisono::cli
