#include "safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>

#include "config.h"

namespace llm {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostHeader = 100'000'000;

struct Type {
  const char* name;
  std::size_t bytes;
  std::uint32_t type;  // number of the block format; kNotRead: skipped
};
constexpr std::uint32_t kNotRead = std::numeric_limits<std::uint32_t>::max();
constexpr Type kTypes[] = {{"F32", 4, 0},
                           {"F16", 2, 1},
                           {"BF16", 2, 30},
                           {"F64", 8, kNotRead},
                           {"I64", 8, kNotRead},
                           {"U64", 8, kNotRead},
                           {"I32", 4, kNotRead},
                           {"U32", 4, kNotRead},
                           {"I16", 2, kNotRead},
                           {"U16", 2, kNotRead},
                           {"I8", 1, kNotRead},
                           {"U8", 1, kNotRead},
                           {"F8_E4M3", 1, kNotRead},
                           {"F8_E5M2", 1, kNotRead},
                           {"BOOL", 1, kNotRead}};

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw std::runtime_error("has '" + name + "' " + what);
}

std::uint64_t whole_number(const std::string& name, const json& value) {
  if (!value.is_number_unsigned()) {
    refuse(name, "with a shape or offset that is not a whole number");
  }
  return value.get<std::uint64_t>();
}

struct Entry {
  std::string name;
  StoredMatrix matrix;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Entry entry_of(const std::string& name, const json& said, std::uint64_t data_bytes) {
  if (!said.is_object() || !said.contains("dtype") || !said["dtype"].is_string() ||
      !said.contains("shape") || !said["shape"].is_array() || !said.contains("data_offsets") ||
      !said["data_offsets"].is_array() || said["data_offsets"].size() != 2) {
    refuse(name, "without a dtype, a shape or two offsets");
  }
  const auto& dtype = said["dtype"].get_ref<const std::string&>();
  const auto* const type =
      std::ranges::find_if(kTypes, [&](const Type& one) { return dtype == one.name; });
  if (type == std::end(kTypes)) {
    refuse(name, "of the unknown type '" + dtype + "'");
  }
  Entry entry{.name = name, .matrix = {.format = block_format(type->type)}};
  entry.begin = whole_number(name, said["data_offsets"][0]);
  entry.end = whole_number(name, said["data_offsets"][1]);
  if (entry.begin > entry.end || entry.end > data_bytes) {
    refuse(name, "outside the file");
  }
  // The product of a shape may overflow; a product larger than its bytes is already an error.
  std::uint64_t count = 1;
  const std::uint64_t most = (entry.end - entry.begin) / type->bytes;
  for (const json& size : said["shape"]) {
    const std::uint64_t next = whole_number(name, size);
    if (next != 0 && count > most / next) {
      refuse(name, "of a shape that does not match its bytes");
    }
    count *= next;
    entry.matrix.columns = next;
  }
  if (count * type->bytes != entry.end - entry.begin) {
    refuse(name, "of a shape that does not match its bytes");
  }
  entry.matrix.rows = entry.matrix.columns == 0 ? 0 : count / entry.matrix.columns;
  return entry;
}

json parse_header(std::span<const std::uint8_t> text) {
  try {
    return parse_object({reinterpret_cast<const char*>(text.data()), text.size()});
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("has a header that ") + error.what());
  }
}

}  // namespace

void add_safetensors(const MappedFile& file, Tensors& tensors) {
  const auto bytes = file.bytes();
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) {
    throw std::runtime_error("is not a safetensors file: it has " + std::to_string(bytes.size()) +
                             " bytes");
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMostHeader) {
    throw std::runtime_error("has a header of " + std::to_string(length) +
                             " bytes, more than the 100000000 that the format allows");
  }
  if (length > bytes.size() - sizeof(length)) {
    throw std::runtime_error("ends in the middle of its header");
  }
  const json header = parse_header(bytes.subspan(sizeof(length), length));
  const auto data = bytes.subspan(sizeof(length) + length);
  std::vector<Entry> entries;
  for (const auto& [name, said] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_of(name, said, data.size()));
    }
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (Entry& entry : entries) {
    if (entry.begin != end) {
      refuse(entry.name, entry.begin < end ? "overlapping another tensor"
                                           : "after bytes that belong to no tensor");
    }
    end = entry.end;
    entry.matrix.data = data.data() + entry.begin;
    if (!tensors.add(entry.name, entry.matrix)) {
      refuse(entry.name, "a second time");
    }
  }
  if (end != data.size()) {
    throw std::runtime_error("has " + std::to_string(data.size() - end) +
                             " bytes after its last tensor");
  }
}

SafetensorsFolder::SafetensorsFolder(const std::string& folder) : tensors_(folder) {
  const std::string index = folder + "/model.safetensors.index.json";
  if (!std::filesystem::exists(index)) {
    add(folder + "/model.safetensors");
    return;
  }
  const json map = read_json(index).value("weight_map", json());
  std::set<std::string> files;
  for (const auto& [name, file] : map.items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      throw std::runtime_error(index + " names no file of its folder for '" + name + "'");
    }
    files.insert(file.get<std::string>());
  }
  for (const std::string& file : files) {
    add(folder + "/" + file);
  }
  for (const auto& [name, file] : map.items()) {
    if (!tensors_.has(name)) {
      throw std::runtime_error(index + " names '" + name + "', which " + file.get<std::string>() +
                               " does not have");
    }
  }
}

void SafetensorsFolder::add(const std::string& path) {
  files_.push_back(std::make_unique<MappedFile>(path));
  try {
    add_safetensors(*files_.back(), tensors_);
  } catch (const std::exception& error) {
    throw std::runtime_error(path + " " + error.what());
  }
}

}  // namespace llm
