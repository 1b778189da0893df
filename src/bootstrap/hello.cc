// Encodes the hello and the error frame, and validates a hello.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "bootstrap/auth.h"
#include "bootstrap/wire.h"

namespace unisono::comm {
namespace {

constexpr char kMagic[9] = "unisono1";
constexpr std::uint32_t kEndian = 0x01020304;
constexpr std::uint16_t kProtocol = 2;
constexpr std::string_view kVersion = UNISONO_VERSION;
// An error begins with its code and the rank at fault.
constexpr std::size_t kBeforeText = 1 + sizeof(std::int32_t);

std::string version_of(const Hello& hello) {
  std::string text(hello.version, strnlen(hello.version, sizeof(hello.version)));
  std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

Hello make_hello(int rank, int size, bool has_token, int patience_ms) {
  Hello hello{};
  std::memcpy(hello.magic, kMagic, sizeof(hello.magic));
  hello.endian = kEndian;
  hello.protocol = kProtocol;
  hello.has_token = has_token ? 1 : 0;
  kVersion.copy(hello.version, sizeof(hello.version));
  hello.rank = rank;
  hello.size = size;
  hello.pid = ::getpid();
  hello.patience_ms = patience_ms;
  fill_random(hello.nonce);
  return hello;
}

std::optional<std::string> hello_problem(const Hello& hello) {
  if (std::memcmp(hello.magic, kMagic, sizeof(hello.magic)) != 0) {
    return std::nullopt;
  }
  if (hello.endian != kEndian) {
    return "it has another byte order";
  }
  if (hello.protocol != kProtocol || version_of(hello) != kVersion) {
    return "it runs unisono " + version_of(hello) + " (protocol " + std::to_string(hello.protocol) +
           "), rank 0 runs " + std::string(kVersion) + " (protocol " + std::to_string(kProtocol) +
           ")";
  }
  return "";
}

std::vector<std::byte> error_bytes(ErrorCode code, std::string_view message, int peer) {
  const std::int32_t number = peer;
  std::vector<std::byte> bytes(kBeforeText + std::min(message.size(), kPacketBytes - kBeforeText));
  bytes[0] = static_cast<std::byte>(code);
  std::memcpy(bytes.data() + 1, &number, sizeof(number));
  std::memcpy(bytes.data() + kBeforeText, message.data(), bytes.size() - kBeforeText);
  return bytes;
}

Error error_from(const Frame& frame) {
  const auto last = static_cast<std::uint8_t>(kLastErrorCode);
  if (frame.bytes.size() < kBeforeText || std::to_integer<std::uint8_t>(frame.bytes[0]) > last) {
    return {ErrorCode::corrupt, "another rank reported an error, but its text cannot be read"};
  }
  std::int32_t peer = -1;
  std::memcpy(&peer, frame.bytes.data() + 1, sizeof(peer));
  const char* text = reinterpret_cast<const char*>(frame.bytes.data());
  return {static_cast<ErrorCode>(frame.bytes[0]),
          std::string(text + kBeforeText, frame.bytes.size() - kBeforeText),
          {.peer = std::max(peer, -1)}};
}

}  // namespace unisono::comm
