// Selects the reader for each file of PyTorch and NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
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

// Reads a file of PyTorch. JSON has a value in two bytes at most: a shorter text is within the
// limits, except for its depth, which the reader of dumps limits too.
ImportedRank read_import(const ImportFile& file) {
  const bool is_json = !is_pickle(file.text);
  if (is_json && file.text.size() / 2 > kDocumentLimits.values) {
    refuse_excessive_json(file.path, file.text);
  }
  if (std::optional<ImportedRank> dump = read_flight_recorder(file)) {
    return *std::move(dump);
  }
  json document = json::object();
  if (is_json) {
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
  if (member(document, "entries").is_array() || member(document, "pg_config").is_object()) {
    refuse_import(file.path,
                  "its JSON has an integer of more than 64 bits, a byte order mark or a byte of 0");
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

enum class FileKind { torch, nccl_log, nccl_inspector, nccl_ras };

FileKind kind_of(const ImportFile& file) {
  // A job's log may begin with the output of other programs.
  if (!is_pickle(file.text) && !file.text.starts_with("{") && is_nccl_log(file.text) &&
      (file.text.find(" NCCL INFO ") != std::string::npos || foreign_file(file.text).empty())) {
    return FileKind::nccl_log;
  }
  return is_nccl_inspector(file.text) ? FileKind::nccl_inspector
         : is_nccl_ras(file.text)     ? FileKind::nccl_ras
                                      : FileKind::torch;
}

// A file of PyTorch is read at once, and its text is dropped. The readers of other kinds need all
// files.
struct Loaded {
  ImportFile file = {};
  FileKind kind = FileKind::torch;
  ImportedRank rank = {};
  std::exception_ptr refusal = {};  // a file of another kind is the better reason
};

Loaded load(ImportFile file) {
  Loaded loaded{.file = std::move(file)};
  loaded.kind = kind_of(loaded.file);
  if (loaded.kind == FileKind::torch) {
    try {
      loaded.rank = read_import(loaded.file);
    } catch (...) {
      loaded.refusal = std::current_exception();
    }
    loaded.file.text.clear();
    loaded.file.text.shrink_to_fit();
  }
  return loaded;
}

// Loads the files on several threads; the first file that cannot be read throws.
std::vector<Loaded> load_in_parallel(std::size_t count, const FileAt& file_at) {
  constexpr std::size_t kMostThreads = 4;
  const std::size_t threads = std::clamp<std::size_t>(
      std::thread::hardware_concurrency(), 1, std::clamp(count, std::size_t{1}, kMostThreads));
  std::vector<std::future<std::vector<Loaded>>> parts;
  for (std::size_t i = 0; i < threads; ++i) {
    const std::size_t begin = count * i / threads;
    const std::size_t end = count * (i + 1) / threads;
    // The calling thread loads the last part.
    parts.push_back(std::async(i + 1 < threads ? std::launch::async : std::launch::deferred,
                               [begin, end, &file_at] {
                                 std::vector<Loaded> loaded;
                                 for (std::size_t at = begin; at < end; ++at) {
                                   loaded.push_back(load(file_at(at)));
                                 }
                                 return loaded;
                               }));
  }
  parts.back().wait();
  std::vector<Loaded> all;
  for (auto& part : parts) {
    std::ranges::move(part.get(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

std::vector<ImportedRank> read_imports(std::size_t count, const FileAt& file_at) {
  std::vector<Loaded> loaded = load_in_parallel(count, file_at);
  // Returns the files if one of them is of this kind; all must be.
  const auto of_kind = [&loaded](FileKind kind, const char* name) {
    const auto first = std::ranges::find(loaded, kind, &Loaded::kind);
    const auto other =
        std::ranges::find_if(loaded, [kind](const Loaded& one) { return one.kind != kind; });
    std::vector<ImportFile> files;
    if (first != loaded.end()) {
      if (other != loaded.end()) {
        refuse_import(other->file.path,
                      fmt::format("it is not {}, but {} is", name, first->file.path));
      }
      std::ranges::transform(loaded, std::back_inserter(files),
                             [](Loaded& one) { return std::move(one.file); });
    }
    return files;
  };
  if (const auto files = of_kind(FileKind::nccl_log, "an NCCL log"); !files.empty()) {
    refuse_copies(files);
    return read_nccl_logs(files);
  }
  if (const auto files = of_kind(FileKind::nccl_inspector, "a file of NCCL Inspector");
      !files.empty()) {
    return read_nccl_inspector(files);
  }
  if (const auto files = of_kind(FileKind::nccl_ras, "an answer of NCCL's RAS"); !files.empty()) {
    if (files.size() > 1) {
      refuse_import(files[1].path,
                    "one output of NCCL's RAS covers all ranks: pass only the latest file");
    }
    return read_nccl_ras(files.front());
  }
  std::vector<ImportedRank> ranks;
  for (Loaded& one : loaded) {
    if (one.refusal) {
      std::rethrow_exception(one.refusal);
    }
    ranks.push_back(std::move(one.rank));
  }
  settle_groups(ranks);
  return ranks;
}

std::vector<ImportedRank> read_imports(const std::vector<ImportFile>& files) {
  return read_imports(files.size(), [&files](std::size_t at) { return files[at]; });
}

}  // namespace unisono::cli
