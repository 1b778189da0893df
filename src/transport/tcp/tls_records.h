// The records of a TLS session between OpenSSL and a non-blocking socket: records that were
// received whole, and encrypted data that the kernel has not taken yet.
#pragma once

#include <cstddef>
#include <vector>

namespace unisono::tcp {

class TlsRecords {
 public:
  static constexpr std::size_t kPlain = std::size_t{16} << 10;  // the longest record
  // Amount of data that is encrypted before it is handed to the kernel; small enough to stay in the
  // cache.
  static constexpr std::size_t kAtOnce = 4 * kPlain;

  // The socket must outlive it.
  explicit TlsRecords(int socket) : socket_(socket) {}

  // Takes bytes from the next record, perhaps after the bytes of an earlier call. Takes them only
  // from a record that has arrived whole, so that OpenSSL never waits within a record. Returns 0 if
  // there is no whole record now, or if no more data will come.
  std::size_t take(char* to, std::size_t bytes) noexcept;
  bool has_unread() const noexcept { return open_ != 0 || whole_record() != 0; }

  // Returns false if there is no room.
  bool put(const char* from, std::size_t bytes) noexcept;
  // Hands pending data to the kernel. Returns false if the kernel does not take all of it now, or
  // takes no more data.
  bool push() noexcept;
  bool has_unsent() const noexcept { return out_begin_ != out_end_; }
  bool is_full() const noexcept { return out_end_ >= kAtOnce; }

  bool ended() const noexcept { return ended_; }  // the other side sends nothing more
  int error() const noexcept { return error_; }   // 0: none
  void set_error(int error) noexcept { error_ = error; }
  // Returns true if more data may arrive and more may be sent.
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
  // Large enough for a handshake as well.
  std::vector<std::byte> out_ = std::vector<std::byte>(kAtOnce + 4 * kMost);
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
};

}  // namespace unisono::tcp
