// Serves one page over HTTP to browsers on other machines, and to programs.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "transport/tcp/address.h"

namespace unisono::cli {

struct Page {
  std::string type = "text/html";  // of its UTF-8 text
  std::string text = {};
};

// Answers GET and HEAD of one path with the page, and anything else with an error. Every connection
// ends with its answer; one that does not ask, or does not read, is closed after kPatience.
// Threads: one.
class PageServer {
 public:
  // Makes the page for a request, which includes its header.
  using Make = std::function<Page(std::string_view request)>;
  // Listens at this address; port 0 is any that is free. Throws config.
  PageServer(std::string path, Make make, const tcp::Address& address);

  tcp::Address address() const;
  // Waits for browsers as long as this (-1: for ever), and does what can be done without waiting.
  void serve(int timeout_ms);
  std::size_t connections() const { return clients_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostClients = 64;
  static constexpr std::size_t kMostAsked = 16 * 1024;  // bytes of a request
  static constexpr std::chrono::seconds kPatience{30};

  struct Client {
    UniqueFd socket;
    std::string request = {};
    std::string answer = {};  // empty: it has not asked yet
    std::size_t sent = 0;
    Clock::time_point until = {};
  };

  std::string answer_to(const std::string& request) const;
  bool read(Client& client) const;    // false: it is over
  static bool write(Client& client);  // false: it is over

  std::string path_;
  Make make_;
  UniqueFd listener_;
  std::vector<Client> clients_;
};

}  // namespace unisono::cli
