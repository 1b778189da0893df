#include "peers/channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

namespace unisono::bench {

std::string Request::text(const std::string& key, const std::string& fallback) const {
  const auto found = options.find(key);
  return found == options.end() ? fallback : found->second;
}

long Request::number(const std::string& key, long fallback) const {
  const auto found = options.find(key);
  return found == options.end() ? fallback : std::stol(found->second);
}

Request parse_request(const std::string& line) {
  Request request;
  std::istringstream words(line);
  words >> request.name;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      throw std::runtime_error("not key=value: " + word);
    }
    request.options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return request;
}

Channel::Channel(const std::string& directory)
    : in_(open((directory + "/rows").c_str(), O_RDONLY | O_CLOEXEC)),
      out_(open((directory + "/answers").c_str(), O_WRONLY | O_CLOEXEC)) {
  if (in_ < 0 || out_ < 0) {
    throw std::runtime_error("cannot open the pipes in " + directory);
  }
}

Channel::~Channel() {
  close(in_);
  close(out_);
}

std::optional<std::string> Channel::read_line() {
  for (;;) {
    const std::size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    std::array<char, 512> buffer;
    const ssize_t got = read(in_, buffer.data(), buffer.size());
    if (got <= 0) {
      return std::nullopt;
    }
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Channel::write_line(const std::string& json) {
  const std::string line = json + "\n";
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t wrote = write(out_, line.data() + done, line.size() - done);
    if (wrote <= 0) {
      throw std::runtime_error("the driver is gone");
    }
    done += static_cast<std::size_t>(wrote);
  }
}

}  // namespace unisono::bench
