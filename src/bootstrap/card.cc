#include "bootstrap/card.h"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <span>

#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr int kMostWorlds = 1'000'000;  // far more than any job has, so that adding is safe
constexpr std::size_t kHeadBytes = 4;   // the length of the text, little endian

std::size_t length_of(const std::string& head) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kHeadBytes; ++i) {
    bytes |= static_cast<std::size_t>(static_cast<unsigned char>(head[i])) << (8 * i);
  }
  return bytes;
}

// Parses "0 1 5 ", up to the first word that is not a number.
std::vector<int> parse_numbers(std::string_view text) {
  std::vector<int> numbers;
  for (int number = 0; !text.empty();) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || number < 0) {
      break;
    }
    numbers.push_back(number);
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(stop - text.data()) + 1));
  }
  return numbers;
}

}  // namespace

std::string to_text(const BusinessCard& card) {
  std::string text = card.host + "\n" + card.machine + "\n";
  for (const int cpu : card.cpus) {
    text += std::to_string(cpu) + " ";
  }
  text += "\n" + std::to_string(card.worlds) + "\n";
  for (const tcp::Address& address : card.addresses) {
    // An interface number has no meaning on another host; see settle().
    text += address.with_scope(0).text() + "\n";
  }
  return text;
}

BusinessCard parse_card(std::string_view text) {
  const auto bad = [] { return Error(ErrorCode::corrupt, "a rank's address card cannot be read"); };
  BusinessCard card;
  for (int number = 0; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      throw bad();
    }
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (number == 0) {
      card.host = line;
      continue;
    }
    if (number == 1) {
      card.machine = line;
      continue;
    }
    if (number == 2) {
      card.cpus = parse_numbers(line);
      continue;
    }
    if (number == 3) {
      const std::vector<int> worlds = parse_numbers(line);
      if (worlds.size() != 1 || worlds.front() > kMostWorlds) {
        throw bad();
      }
      card.worlds = worlds.front();
      continue;
    }
    const auto address = tcp::Address::parse(line);
    if (!address.value) {
      throw bad();
    }
    card.addresses.push_back(*address.value);
  }
  if (card.host.empty() || card.addresses.empty()) {
    throw bad();
  }
  return card;
}

std::vector<BusinessCard> parse_table(std::string_view table, int size) {
  std::vector<BusinessCard> cards;
  const bool right = !table.empty() && table[0] == 'T';
  table.remove_prefix(right ? 1 : table.size());
  while (!table.empty() && cards.size() < static_cast<std::size_t>(size)) {
    const std::size_t end = table.find('\0');
    cards.push_back(parse_card(table.substr(0, end)));
    table.remove_prefix(end == std::string_view::npos ? table.size() : end + 1);
  }
  if (cards.size() != static_cast<std::size_t>(size) || !table.empty()) {
    throw Error(ErrorCode::corrupt, "the rank table sent by rank 0 cannot be read");
  }
  return cards;
}

std::string to_table(const std::vector<BusinessCard>& cards) {
  std::string table = "T";
  for (const BusinessCard& card : cards) {
    table += to_text(card) + '\0';
  }
  return table;
}

std::string find_unreachable(const std::vector<BusinessCard>& cards) {
  const auto is_loopback = [](const tcp::Address& address) { return address.is_loopback(); };
  for (std::size_t a = 0; a < cards.size(); ++a) {
    const std::vector<tcp::Address>& addresses = cards[a].addresses;
    if (!std::all_of(addresses.begin(), addresses.end(), is_loopback)) {
      continue;
    }
    for (std::size_t b = 0; b < cards.size(); ++b) {
      const BusinessCard& other = cards[b];
      if (other.host != cards[a].host &&
          !std::all_of(other.addresses.begin(), other.addresses.end(), is_loopback)) {
        return "rank " + std::to_string(a) + " can be reached at " + addresses.front().host_text() +
               " only, which is a loopback address, but rank " + std::to_string(b) + " is at " +
               other.addresses.front().host_text() +
               "\nset UNISONO_ADDRESS to an address of rank 0 that all hosts can reach, or set "
               "UNISONO_INTERFACE";
      }
    }
  }
  return {};
}

std::string text_frame(std::string_view text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) {
    frame += static_cast<char>((bytes >> shift) & 0xffU);
  }
  return frame.append(text);
}

TextWriter::State TextWriter::step(tcp::Channel& to) {
  while (!rest_.empty()) {
    iovec part{.iov_base = const_cast<char*>(rest_.data()), .iov_len = rest_.size()};
    const ssize_t put = to.send(std::span(&part, 1));
    if (put < 0 && errno != EINTR) {
      return errno == EAGAIN ? State::going_on : State::closed;
    }
    rest_.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
  }
  return to.has_unsent() && !to.push() ? State::going_on : State::done;
}

bool send_text(tcp::Channel& to, std::string_view text, const Deadline& deadline) {
  const std::string frame = text_frame(text);
  TextWriter writer(frame);
  for (;;) {
    const TextWriter::State state = writer.step(to);
    if (state != TextWriter::State::going_on) {
      return state == TextWriter::State::done;
    }
    if (!wait_for(to.get(), POLLOUT, deadline)) {
      return false;
    }
  }
}

TextReader::State TextReader::step(tcp::Channel& from, std::size_t most_bytes) {
  char buffer[4096];
  for (;;) {
    std::size_t wanted = kHeadBytes - head_.size();
    if (wanted == 0) {
      const std::size_t bytes = length_of(head_);
      if (bytes > most_bytes) {
        return State::closed;
      }
      wanted = bytes - text_.size();
      if (wanted == 0) {
        return State::done;
      }
    }
    iovec part{.iov_base = buffer, .iov_len = std::min(wanted, sizeof(buffer))};
    const ssize_t got = from.receive(std::span(&part, 1));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return State::going_on;
    }
    if (got <= 0) {
      return State::closed;
    }
    (head_.size() < kHeadBytes ? head_ : text_).append(buffer, static_cast<std::size_t>(got));
  }
}

std::string error_text(ErrorCode code, const std::string& message) {
  return "E" + std::string(1, static_cast<char>(code)) + message;
}

std::optional<std::string> ask_text(tcp::Channel& peer, std::string_view text,
                                    std::size_t most_bytes, const Deadline& deadline,
                                    std::string& obstacle) {
  obstacle = "it closed the connection";
  if (!send_text(peer, text, deadline)) {
    return std::nullopt;
  }
  TextReader reader;
  for (;;) {
    const TextReader::State state = reader.step(peer, most_bytes);
    if (state == TextReader::State::done) {
      break;
    }
    if (state == TextReader::State::closed) {
      return std::nullopt;
    }
    if (!wait_for(peer.get(), POLLIN, deadline)) {
      obstacle = "it does not answer";
      return std::nullopt;
    }
  }
  const std::string& answer = reader.text();
  if (answer.size() >= 2 && answer[0] == 'E') {
    const auto code = static_cast<std::uint8_t>(answer[1]);
    const bool known = code <= static_cast<std::uint8_t>(kLastErrorCode);
    throw Error(known ? static_cast<ErrorCode>(code) : ErrorCode::connection, answer.substr(2));
  }
  return answer;
}

bool has_hung_up(tcp::Channel& peer) {
  char byte = 0;
  iovec part{.iov_base = &byte, .iov_len = 1};
  return peer.receive(std::span(&part, 1)) >= 0 || (errno != EAGAIN && errno != EINTR);
}

}  // namespace unisono::comm
