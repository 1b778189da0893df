#include "record/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/failure.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "unisono.trace/";
constexpr int kVersion = 1;
constexpr std::string_view kHowToMake = "unisono run --record FILE makes a recording";

// Returns true if the bytes cannot be text.
bool is_binary(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b';
  });
}

bool has_word(std::string_view text, std::string_view lower_case) {
  return std::search(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                     [](char a, char b) {
                       return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
                     }) != text.end();
}

}  // namespace

std::string what_is(std::string_view text) {
  constexpr std::size_t kEnough = 1024;
  constexpr std::pair<std::string_view, std::string_view> kMagic[] = {
      {"\x28\xb5\x2f\xfd", "compressed by zstd"},
      {"\xfd"
       "7zXZ",
       "compressed by xz"},
      {"BZh", "compressed by bzip2"},
      {"PK\x03\x04", "a zip archive"},
      {"\x7f"
       "ELF",
       "a program"},
      {"%PDF", "a PDF document"},
      {"\x89PNG", "a picture"}};
  for (const auto& [magic, name] : kMagic) {
    if (text.starts_with(magic)) {
      return std::string(name);
    }
  }
  const std::string_view head = text.substr(0, kEnough);
  if (head.starts_with("UnoRec")) {
    return "what one rank recorded";
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return text.empty() ? "empty" : "blank";
  }
  if (is_binary(head)) {
    return "a binary file";
  }
  if (text[first] == '<') {
    return has_word(head, "<html") ? "an HTML page" : "a document of XML";
  }
  return text[first] == '{' || text[first] == '[' ? "" : "a plain text";
}

void refuse_other_files(const std::string& path, std::string_view text, std::string_view expected) {
  const std::string what = what_is(text);
  if (what.empty()) {
    return;
  }
  std::string next(kHowToMake);
  if (what == "what one rank recorded") {
    next = "unisono trace merge FOLDER makes one recording of what all ranks left in a folder";
  } else if (what.starts_with("compressed")) {
    next = "unpack it first";
  } else if (what == "an HTML page") {
    next = "a page of unisono view opens in a browser; the recording that it shows is another file";
  }
  throw UsageError(fmt::format("{} is {}", path, what), fmt::format("{} is expected", expected),
                   next);
}

bool begins(const ordered_json& document, const char* key, std::string_view with) {
  return document.is_object() && document.contains(key) && document[key].is_string() &&
         document[key].get<std::string>().starts_with(with);
}

std::string format_of(const ordered_json& document) {
  for (const char* key : {"format", "schema"}) {
    if (begins(document, key, "unisono.")) {
      return document[key].get<std::string>().substr(0, 40);
    }
  }
  return "";
}

void refuse_other_version(const std::string& path, const ordered_json& document) {
  if (!begins(document, "format", kFormat)) {
    return;
  }
  const std::string format = document["format"];
  int version = 0;
  const char* const end = format.data() + format.size();
  const auto [stop, error] = std::from_chars(format.data() + kFormat.size(), end, version);
  const bool is_number = error == std::errc() && stop == end;
  if (is_number && version == kVersion) {
    return;
  }
  const bool is_newer = is_number && version > kVersion;
  throw UsageError(
      fmt::format("{} is a recording of {} version", path, is_newer ? "a newer" : "another"),
      fmt::format("it is {}, and this program reads {}{}", format, kFormat, kVersion),
      is_newer ? "update unisono, or record again with this one" : "record again with this one");
}

bool is_simulated(const ordered_json& document) {
  const ordered_json& events = document["traceEvents"];
  return std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.is_object() && event.contains("args") && event["args"].is_object() &&
           event["args"].contains("to");
  });
}

void refuse_traces(const std::string& path, const ordered_json& document) {
  if (!document.is_object() || !document.contains("traceEvents")) {
    return;
  }
  const std::string open = "open it in ui.perfetto.dev or chrome://tracing";
  if (document.contains("otherData") && begins(document["otherData"], "format", kFormat)) {
    throw UsageError(fmt::format("{} is a recording for chrome://tracing and Perfetto", path),
                     "unisono trace export made it of the file that unisono run --record wrote",
                     "open it there, or give that file");
  }
  if (is_simulated(document)) {
    throw UsageError(fmt::format("{} is a simulation, which unisono sim --trace wrote", path),
                     "it is in the format of chrome://tracing and Perfetto already",
                     open + ", or unisono view it");
  }
  throw UsageError(fmt::format("{} is a trace of another program", path),
                   "a recording (unisono.trace/1) is expected", open);
}

}  // namespace unisono::cli
