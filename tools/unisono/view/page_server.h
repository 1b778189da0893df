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
// ends after its answer. A connection that sends no request, or does not read, is closed after
// kPatience. Threads: one.
class PageServer {
 public:
  // Makes the page for a request; `request` includes the header.
  using Make = std::function<Page(std::string_view request)>;
  // Listens at this address; port 0 selects a free one. Throws config.
  PageServer(std::string path, Make make, const tcp::Address& address);

  tcp::Address address() const;
  // Waits for browsers for at most this time (-1: forever), and serves them without blocking.
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
    std::string answer = {};  // empty: no request yet
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
