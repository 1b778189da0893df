#include "parallel/safetensors.h"

#include <cstring>
#include <optional>
#include <utility>

#include "base/dtypes.h"
#include "base/json.h"
#include "base/json_text.h"

namespace unisono::parallel {
namespace {

constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;  // the largest exact integer in JSON

FileTensor read_tensor(const JsonNode& node, std::uint64_t data, std::uint64_t file_bytes) {
  node.allow_only({"dtype", "shape", "data_offsets"});
  FileTensor tensor;
  std::optional<Dtype> dtype;
  for (const DtypeTraits& known : kDtypes) {
    if (node.at("dtype").text() == known.safetensors) {
      dtype = known.dtype;
    }
  }
  if (!dtype) {
    node.at("dtype").fail("a type that this library does not have");
  }
  tensor.dtype = *dtype;
  const JsonNode shape = node.at("shape");
  std::uint64_t bytes = size_of(tensor.dtype);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(shape.item(i).whole(0, kMostWhole));
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      shape.fail("more elements than 64 bits can count");
    }
    tensor.shape.push_back(size);
  }
  const JsonNode offsets = node.column("data_offsets", 2);
  const auto begin = static_cast<std::uint64_t>(offsets.item(0).whole(0, kMostWhole));
  const auto end = static_cast<std::uint64_t>(offsets.item(1).whole(0, kMostWhole));
  if (end < begin || end - begin != bytes || end > file_bytes - data) {
    offsets.fail("they do not cover " + std::to_string(bytes) + " bytes of the file");
  }
  tensor.begin = data + begin;
  tensor.bytes = bytes;
  return tensor;
}

}  // namespace

std::string write_header(FileContents& contents, const std::vector<std::string>& order) {
  std::string json = "{";
  std::uint64_t at = 0;
  for (const std::string& name : order) {
    FileTensor& tensor = contents.at(name);
    tensor.begin = at;
    tensor.bytes = size_of(tensor.dtype);
    for (const std::size_t size : tensor.shape) {
      tensor.bytes *= size;
    }
    at += tensor.bytes;
    json +=
        (json.size() == 1 ? "" : ",") + json_string(name) + ":{\"dtype\":\"" +
        std::string(traits_of(tensor.dtype).safetensors) + "\"," +
        json_column("shape", tensor.shape, [](std::size_t size) { return std::to_string(size); }) +
        ",\"data_offsets\":[" + std::to_string(tensor.begin) + "," + std::to_string(at) + "]}";
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the data must begin at a multiple of 8
  const std::uint64_t length = json.size();
  std::string header(sizeof(length), '\0');
  std::memcpy(header.data(), &length, sizeof(length));
  header += json;
  for (auto& [_, tensor] : contents) {
    tensor.begin += header.size();
  }
  return header;
}

Parsed<FileContents> read_header(std::string_view header, std::uint64_t file_bytes) {
  const std::uint64_t data = sizeof(std::uint64_t) + header.size();
  if (data > file_bytes) {
    return Parsed<FileContents>::failure("the header is longer than the file", "byte 0");
  }
  return parse_json_as<FileContents>(header, [&](const JsonNode& root) {
    FileContents contents;
    for (std::size_t i = 0; i < root.keys().size(); ++i) {
      if (root.keys()[i] != "__metadata__") {
        contents[root.keys()[i]] = read_tensor(root.member(i), data, file_bytes);
      }
    }
    return contents;
  });
}

std::string write_index(const std::map<std::string, std::string>& files, std::uint64_t bytes) {
  std::string text =
      "{\n  \"metadata\": {\"total_size\": " + std::to_string(bytes) + "},\n  \"weight_map\": {";
  const char* between = "\n    ";
  for (const auto& [name, file] : files) {
    text += between + json_string(name) + ": " + json_string(file);
    between = ",\n    ";
  }
  return text + "\n  }\n}\n";
}

Parsed<std::map<std::string, std::string>> read_index(std::string_view text) {
  using Files = std::map<std::string, std::string>;
  return parse_json_as<Files>(text, [](const JsonNode& root) {
    Files files;
    const JsonNode map = root.at("weight_map");
    for (std::size_t i = 0; i < map.keys().size(); ++i) {
      const JsonNode file = map.member(i);
      if (file.text().empty() || file.text().find('/') != std::string::npos) {
        file.fail("a plain file name without a folder is needed");
      }
      files[map.keys()[i]] = file.text();
    }
    return files;
  });
}

}  // namespace unisono::parallel
