// The records of a TLS session between OpenSSL and a socket that does not block: whole ones of what
// has come, and what has been encrypted and the kernel has not taken yet.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::tcp {

class TlsRecords {
 public:
  static constexpr std::size_t kPlain = std::size_t{16} << 10;  // of a record, at most
  // What is encrypted before the kernel gets it, at once: small enough to stay in the cache.
  static constexpr std::size_t kAtOnce = 4 * kPlain;

  // The socket must outlive it.
  explicit TlsRecords(int socket) : socket_(socket) {}

  // Bytes of the next record, whose beginning may have been taken; of whole records only, so that
  // OpenSSL never holds a part of one. 0: there are none now, or none any more.
  std::size_t take(char* to, std::size_t bytes) noexcept;
  bool has_unread() const noexcept { return open_ != 0 || whole_record() != 0; }

  // False: there is no room for that.
  bool put(const char* from, std::size_t bytes) noexcept;
  // Gives the kernel what waits. False: it does not take all now, or nothing any more.
  bool push() noexcept;
  bool has_unsent() const noexcept { return out_begin_ != out_end_; }
  bool is_full() const noexcept { return out_end_ >= kAtOnce; }

  bool ended() const noexcept { return ended_; }  // the other side sends nothing more
  int error() const noexcept { return error_; }   // 0: none
  void set_error(int error) noexcept { error_ = error; }
  // More may come, or be taken.
  bool goes_on() const noexcept { return error_ == 0 && !ended_; }

 private:
  static constexpr std::size_t kHeader = 5;
  static constexpr std::size_t kMost = kPlain + 256 + kHeader;

  std::size_t whole_record() const noexcept;
  bool fill() noexcept;

  int socket_;
  bool ended_ = false;
  int error_ = 0;
  std::vector<std::byte> in_ = std::vector<std::byte>(4 * kMost);
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::size_t open_ = 0;  // of the record that OpenSSL has begun to take
  // A handshake fits as well.
  std::vector<std::byte> out_ = std::vector<std::byte>(kAtOnce + 4 * kMost);
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
};

}  // namespace unisono::tcp
