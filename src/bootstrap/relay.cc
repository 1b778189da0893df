#include "bootstrap/relay.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::string_view kWord = "relay";

bool parse_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0;
}

}  // namespace

std::optional<RelayPlace> relay_from_environment() {
  const std::string text = read_env("UNISONO_RELAY").value_or("");
  if (text.empty()) {
    return std::nullopt;
  }
  const std::size_t slash = text.find('/');
  const Parsed<Address> address = Address::parse(text.substr(0, slash));
  if (slash == std::string::npos || !address || address.value->port() == 0) {
    throw Error(ErrorCode::config,
                "UNISONO_RELAY=" + text +
                    " is not ADDRESS:PORT/KEY\nunset it: unisono run --chaos sets it");
  }
  return RelayPlace{.address = *address.value, .key = text.substr(slash + 1)};
}

std::string to_text(const RelayPlace& place) {
  return place.address.text() + "/" + place.key;
}

std::string to_text(const RelayRequest& request) {
  std::string text(kWord);
  text += " " + request.key;
  for (const int number : {request.from, request.to, request.stream}) {
    text += " " + std::to_string(number);
  }
  return text + " " + request.address.text() + "\n";
}

Parsed<RelayRequest> parse_relay_request(std::string_view line) {
  std::array<std::string_view, 6> words;
  for (std::string_view& word : words) {
    const std::size_t end = std::min(line.find(' '), line.size());
    word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  RelayRequest request;
  request.key = words[1];
  const Parsed<Address> address = Address::parse(words[5]);
  if (words[0] != kWord || !parse_number(words[2], request.from) ||
      !parse_number(words[3], request.to) || !parse_number(words[4], request.stream) || !address ||
      !line.empty()) {
    return Parsed<RelayRequest>::failure("this is not a request to a relay", "");
  }
  request.address = *address.value;
  return Parsed<RelayRequest>::success(std::move(request));
}

}  // namespace unisono::tcp
