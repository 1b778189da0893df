#include "trace/dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/text_file.h"
#include "imports/pickle.h"

namespace unisono::cli {
namespace {

std::vector<std::string> dump_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.is_regular_file(error) && !entry.path().filename().string().starts_with(".")) {
        files.push_back(entry.path().string());
      }
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

}  // namespace

bool are_dumps(const std::vector<std::string>& paths) {
  constexpr std::size_t kLooked = 1 << 16;
  constexpr std::array<std::string_view, 5> kMarks = {"\"pg_config\"", "\"entries\"",
                                                      "\"distributedInfo\"", "\"schemaVersion\"",
                                                      "\"inspector_output_format_version\""};
  std::error_code error;
  if (paths.empty() || !std::filesystem::exists(paths.front(), error)) {
    return false;
  }
  const std::vector<std::string> files = dump_files({paths.front()});
  if (files.empty()) {
    return false;
  }
  const std::string text = read_text_file(files.front(), kMostOfRecording);
  const std::string_view head = std::string_view(text).substr(0, kLooked);
  // A reader refuses a file of another known program, and names the program.
  const bool is_foreign = !foreign_file(text).empty();
  const bool is_ours =
      head.starts_with("UnoRec") || head.find("\"unisono.") != std::string_view::npos;
  const bool is_json = head.starts_with("{") || head.starts_with("[");
  return !is_ours && (is_pickle(text) || (!is_json && is_nccl_log(text)) || is_nccl_ras(text) ||
                      is_foreign || std::ranges::any_of(kMarks, [head](std::string_view mark) {
                        return head.find(mark) != std::string_view::npos;
                      }));
}

Dumps read_dumps(const std::vector<std::string>& paths) {
  const std::vector<std::string> files = dump_files(paths);
  if (files.empty()) {
    throw UsageError(fmt::format("{} has no files", paths.front()), {}, "unisono help trace");
  }
  Dumps dumps{.ranks = read_imports(files.size(), [&files](std::size_t at) {
                return ImportFile{.path = files[at],
                                  .text = read_text_file(files[at], kMostOfRecording)};
              })};
  std::ranges::sort(dumps.ranks, {}, &ImportedRank::rank);
  const auto same = std::ranges::adjacent_find(dumps.ranks, {}, &ImportedRank::rank);
  if (same != dumps.ranks.end()) {
    throw UsageError(
        fmt::format("{} and {} are both of rank {}", same->path, (same + 1)->path, same->rank),
        "give one file of each rank", "unisono help trace");
  }
  const std::int64_t before_all = leave_out_before_all(dumps.ranks);
  for (const ImportedRank& rank : dumps.ranks) {
    dumps.account.add(rank.account);
  }
  dumps.account.leave_out(before_all, "from before the first calls that the other ranks have");
  if (std::ranges::any_of(dumps.ranks, [](const ImportedRank& rank) { return !rank.has_groups; })) {
    dumps.account.assume("all ranks make all calls: the files do not name the groups of calls");
  }
  return dumps;
}

}  // namespace unisono::cli
