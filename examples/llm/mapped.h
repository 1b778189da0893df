// A file mapped into memory for reading.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace llm {

class MappedFile {
 public:
  // Errors: std::runtime_error with the file and its mistake.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace llm
