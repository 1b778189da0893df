#include "gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "blocks.h"

namespace llm {
namespace {

// The kinds of a value, as the file numbers them.
enum Kind : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// Reads little-endian values one after the other, and never past the end.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    need(sizeof(T));
    T value;
    std::memcpy(&value, &bytes_[at_], sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto length = take<std::uint64_t>();
    need(length);
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return value;
  }
  Meta value(std::uint32_t kind) {
    switch (kind) {
      case kString:
        return text();
      case kBool:
        return take<std::uint8_t>() != 0;
      case kArray:
        return array();
      case kF32:
      case kF64:
        return number(kind);
      case kU64:
      case kI64:
        return take<std::int64_t>();
      default:
        return static_cast<std::int64_t>(number(kind));
    }
  }
  std::size_t at() const { return at_; }

 private:
  void need(std::uint64_t bytes) const {
    if (bytes > bytes_.size() - at_) {
      throw std::runtime_error("ends in the middle of its header");
    }
  }
  double number(std::uint32_t kind) {
    switch (kind) {
      case kU8:
      case kBool:
        return take<std::uint8_t>();
      case kI8:
        return take<std::int8_t>();
      case kU16:
        return take<std::uint16_t>();
      case kI16:
        return take<std::int16_t>();
      case kU32:
        return take<std::uint32_t>();
      case kI32:
        return take<std::int32_t>();
      case kF32:
        return static_cast<double>(take<float>());
      case kU64:
        return static_cast<double>(take<std::uint64_t>());
      case kI64:
        return static_cast<double>(take<std::int64_t>());
      case kF64:
        return take<double>();
      default:
        throw std::runtime_error("has a value of the unknown kind " + std::to_string(kind));
    }
  }
  Meta array() {
    const auto kind = take<std::uint32_t>();
    const auto count = take<std::uint64_t>();
    need(count);  // every element takes a byte at least
    if (kind == kString) {
      std::vector<std::string> values(count);
      std::ranges::generate(values, [this] { return text(); });
      return values;
    }
    std::vector<double> values(count);
    std::ranges::generate(values, [this, kind] { return number(kind); });
    return values;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::size_t kAlignment = 32;        // unless the file says otherwise

}  // namespace

Gguf::Gguf(const std::string& path) : path_(path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || ::fstat(file, &status) != 0) {
    const int error = errno;
    if (file >= 0) {
      ::close(file);
    }
    fail(std::string("cannot be read: ") + std::strerror(error));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) {
    fail("is empty, or cannot be mapped");
  }
  bytes_ = {static_cast<const std::uint8_t*>(memory), size};
  try {
    parse();
  } catch (const std::exception& error) {
    ::munmap(memory, size);
    fail(error.what());
  }
}

Gguf::~Gguf() {
  ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

void Gguf::fail(const std::string& what) const {
  throw std::runtime_error(path_ + " " + what);
}

void Gguf::parse() {
  Reader in(bytes_);
  if (in.take<std::uint32_t>() != kMagic) {
    throw std::runtime_error("is no GGUF file");
  }
  const auto version = in.take<std::uint32_t>();
  if (version != 2 && version != 3) {
    throw std::runtime_error("is GGUF version " + std::to_string(version) + ", not 2 or 3");
  }
  const auto tensors = in.take<std::uint64_t>();
  const auto values = in.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < values; ++i) {
    std::string key = in.text();
    const auto kind = in.take<std::uint32_t>();
    meta_[std::move(key)] = in.value(kind);
  }
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const std::string name = in.text();
    const auto dims = in.take<std::uint32_t>();
    if (dims < 1 || dims > 2) {
      throw std::runtime_error("has '" + name + "' of " + std::to_string(dims) +
                               " dimensions; vectors and matrices are read");
    }
    Stored stored;
    stored.columns = in.take<std::uint64_t>();
    stored.rows = dims == 2 ? in.take<std::uint64_t>() : 1;
    stored.type = in.take<std::uint32_t>();
    stored.offset = in.take<std::uint64_t>();
    tensors_[name] = stored;
  }
  const std::size_t alignment = has_meta("general.alignment")
                                    ? static_cast<std::size_t>(std::max<std::int64_t>(
                                          1, meta<std::int64_t>("general.alignment")))
                                    : kAlignment;
  const std::size_t data = (in.at() + alignment - 1) / alignment * alignment;
  for (auto& [name, stored] : tensors_) {
    const BlockFormat* format = block_format(stored.type);
    if (format == nullptr) {
      throw std::runtime_error("has '" + name + "' in type " + std::to_string(stored.type) +
                               ", which is not read here");
    }
    stored.offset += data;
    const std::size_t row = stored.columns / format->elements * format->bytes;
    if (stored.columns % format->elements != 0 || stored.offset > bytes_.size() ||
        (row != 0 && stored.rows > (bytes_.size() - stored.offset) / row)) {
      throw std::runtime_error("has '" + name + "' outside of the file");
    }
  }
}

const Gguf::Stored& Gguf::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    fail("has no tensor '" + name + "'");
  }
  return found->second;
}

std::size_t Gguf::rows(const std::string& name) const {
  return tensor(name).rows;
}

std::size_t Gguf::columns(const std::string& name) const {
  return tensor(name).columns;
}

std::vector<float> Gguf::read(const std::string& name, unisono::parallel::Range rows,
                              unisono::parallel::Range columns) const {
  const Stored& stored = tensor(name);
  if (rows.first + rows.count > stored.rows || columns.first + columns.count > stored.columns) {
    fail("has '" + name + "' of " + std::to_string(stored.rows) + " x " +
         std::to_string(stored.columns) + ", less than the model needs");
  }
  const BlockFormat& format = *block_format(stored.type);
  const std::size_t row_bytes = stored.columns / format.elements * format.bytes;
  std::vector<float> whole(stored.columns);
  std::vector<float> part(rows.count * columns.count);
  for (std::size_t r = 0; r < rows.count; ++r) {
    const std::uint8_t* row = &bytes_[stored.offset + (rows.first + r) * row_bytes];
    for (std::size_t b = 0; b < stored.columns / format.elements; ++b) {
      format.unpack(row + b * format.bytes, &whole[b * format.elements]);
    }
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(columns.first), columns.count,
                part.begin() + static_cast<std::ptrdiff_t>(r * columns.count));
  }
  return part;
}

}  // namespace llm
