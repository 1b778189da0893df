#include "gguf.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>

namespace llm {
namespace {

// Kinds of values, with the file's numbers.
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

// Reads consecutive little-endian values, never past the end.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // Sets the name of the next value, for errors.
  void set_place(const std::string& name) { name_ = name; }

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
      fail("ends in the middle of its header");
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + ", at byte " + std::to_string(at_) +
                             (name_.empty() ? "" : ", in '" + name_ + "'"));
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
        fail("has a value of the unknown kind " + std::to_string(kind));
    }
  }
  Meta array() {
    const auto kind = take<std::uint32_t>();
    const auto count = take<std::uint64_t>();
    need(count);  // every element takes at least a byte
    elements_ += count;
    if (elements_ > kMostElements) {
      fail("has lists of more than " + std::to_string(kMostElements) + " elements");
    }
    if (kind == kString) {
      constexpr std::uint64_t kLength = 8;  // in bytes
      need(count * kLength);
      std::vector<std::string> values(count);
      std::ranges::generate(values, [this] { return text(); });
      return values;
    }
    std::vector<double> values(count);
    std::ranges::generate(values, [this, kind] { return number(kind); });
    return values;
  }

  static constexpr std::uint64_t kMostElements = 1U << 24;  // in all lists; up to 32 bytes each

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::uint64_t elements_ = 0;
  std::string name_;
};

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::size_t kAlignment = 32;        // default

}  // namespace

Gguf::Gguf(const std::string& path) : file_(path), tensors_(path) {
  try {
    parse();
  } catch (const std::exception& error) {
    tensors_.fail(error.what());
  }
}

void Gguf::parse() {
  const std::span<const std::uint8_t> bytes = file_.bytes();
  Reader in(bytes);
  if (in.take<std::uint32_t>() != kMagic) {
    throw std::runtime_error("is not a GGUF file");
  }
  const auto version = in.take<std::uint32_t>();
  if (version != 2 && version != 3) {
    throw std::runtime_error("is GGUF version " + std::to_string(version) + ", not 2 or 3");
  }
  const auto tensors = in.take<std::uint64_t>();
  const auto values = in.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < values; ++i) {
    std::string key = in.text();
    in.set_place(key);
    const auto kind = in.take<std::uint32_t>();
    if (!meta_.emplace(key, in.value(kind)).second) {
      throw std::runtime_error("has '" + key + "' twice");
    }
    in.set_place("");
  }
  struct Entry {
    std::string name;
    StoredMatrix matrix;
    std::uint64_t offset = 0;
  };
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    Entry& entry = entries.emplace_back(Entry{.name = in.text(), .matrix = {}});
    in.set_place(entry.name);
    const auto dims = in.take<std::uint32_t>();
    if (dims < 1 || dims > 2) {
      throw std::runtime_error("has '" + entry.name + "' of " + std::to_string(dims) +
                               " dimensions; only vectors and matrices are supported");
    }
    entry.matrix.columns = in.take<std::uint64_t>();
    entry.matrix.rows = dims == 2 ? in.take<std::uint64_t>() : 1;
    if (entry.matrix.columns == 0 || entry.matrix.rows == 0) {
      throw std::runtime_error("has '" + entry.name + "' without numbers");
    }
    const auto type = in.take<std::uint32_t>();
    entry.matrix.format = block_format(type);
    if (entry.matrix.format == nullptr) {
      throw std::runtime_error("has '" + entry.name + "' in type " + std::to_string(type) +
                               ", which is not supported here");
    }
    entry.offset = in.take<std::uint64_t>();
  }
  const std::size_t alignment = has_meta("general.alignment")
                                    ? static_cast<std::size_t>(std::max<std::int64_t>(
                                          1, meta<std::int64_t>("general.alignment")))
                                    : kAlignment;
  const std::size_t data = (in.at() + alignment - 1) / alignment * alignment;
  for (Entry& entry : entries) {
    StoredMatrix& matrix = entry.matrix;
    const std::size_t blocks = matrix.columns / matrix.format->elements;
    const std::size_t room =
        data + entry.offset < data ? 0 : bytes.size() - std::min(bytes.size(), data + entry.offset);
    if (matrix.columns % matrix.format->elements != 0 || blocks > room ||
        (blocks != 0 && matrix.rows > room / (blocks * matrix.format->bytes))) {
      throw std::runtime_error("has '" + entry.name + "' outside the file");
    }
    matrix.data = bytes.data() + data + entry.offset;
    if (!tensors_.add(entry.name, matrix)) {
      throw std::runtime_error("has '" + entry.name + "' twice");
    }
  }
}

}  // namespace llm
