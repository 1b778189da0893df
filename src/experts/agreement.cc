#include "experts/agreement.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace unisono::experts {
namespace {

struct Told {
  std::uint32_t code = 0;
  std::uint32_t is_wrong = 0;
  char text[504] = {};
};

std::string rank_text(std::size_t rank) {
  return "rank " + std::to_string(rank);
}

[[noreturn]] void throw_difference(std::size_t rank, const std::string& first,
                                   const std::string& other) {
  throw Error(ErrorCode::mismatch,
              "experts: rank 0 " + first + ", and " + rank_text(rank) + " " + other +
                  "\nmake the same calls of an exchange in the same order on "
                  "all ranks",
              {.peer = static_cast<int>(rank)});
}

void compare(const Opening& first, const Opening& other, std::size_t rank) {
  if (first.kind != other.kind) {
    throw_difference(rank, std::string("calls ") + to_text(first.kind),
                     std::string("calls ") + to_text(other.kind));
  }
  if (first.routing != other.routing) {
    throw_difference(rank, "uses routing " + std::to_string(first.routing),
                     "uses routing " + std::to_string(other.routing));
  }
  if (first.parts != other.parts) {
    throw_difference(rank, "gives " + std::to_string(first.parts) + " payloads",
                     "gives " + std::to_string(other.parts));
  }
  if (first.options != other.options) {
    throw_difference(rank, "gives some ExchangeOptions", "gives others");
  }
  if (first.details != other.details) {
    throw_difference(rank, "gives one data type, coding, and weights or not",
                     "gives something else");
  }
  for (std::size_t part = 0; part < first.parts; ++part) {
    if (first.part_bytes[part] != other.part_bytes[part]) {
      throw_difference(rank, "has rows of " + std::to_string(first.part_bytes[part]) + " bytes",
                       "has rows of " + std::to_string(other.part_bytes[part]));
    }
  }
}

}  // namespace

const char* to_text(CallKind kind) {
  constexpr const char* kNames[] = {"Exchange()",   "route()",   "dispatch()", "gather_list()",
                                    "end_gather()", "combine()", "mask()"};
  return kNames[static_cast<std::size_t>(kind)];
}

void throw_if_any(Communicator& comm, bool any, const Mistake& mine, const char* call) {
  if (!any) {
    return;
  }
  Told told{.code = static_cast<std::uint32_t>(mine.code), .is_wrong = !mine.text.empty()};
  std::memcpy(told.text, mine.text.data(), std::min(mine.text.size(), sizeof told.text - 1));
  std::vector<Told> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&told, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].is_wrong != 0) {
      throw Error(
          static_cast<ErrorCode>(all[rank].code),
          std::string("experts: ") + call + " of " + rank_text(rank) + ": " + all[rank].text,
          {.peer = static_cast<int>(rank)});
    }
  }
}

void agree(Communicator& comm, const Mistake& mine, const char* call) {
  const std::uint8_t wrong = mine.text.empty() ? 0 : 1;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::span(&wrong, 1), all);
  throw_if_any(comm, std::count(all.begin(), all.end(), 1) != 0, mine, call);
}

namespace {
void check(Communicator& comm, const std::vector<Opening>& all, CallKind kind,
           const Mistake& mistake) {
  throw_if_any(comm,
               std::any_of(all.begin(), all.end(),
                           [](const Opening& opening) { return opening.is_wrong != 0; }),
               mistake, to_text(kind));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    compare(all[0], all[rank], rank);
  }
}
}  // namespace

std::vector<Opening> open(Communicator& comm, Opening mine, const Mistake& mistake) {
  mine.is_wrong = mistake.text.empty() ? 0 : 1;
  std::vector<Opening> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  check(comm, all, mine.kind, mistake);
  return all;
}

void SplitOpening::start(Communicator& comm, const Opening& mine, const Mistake& mistake) {
  mine_ = mine;
  mine_.is_wrong = mistake.text.empty() ? 0 : 1;
  mistake_ = mistake;
  all_.assign(static_cast<std::size_t>(comm.size()), {});
  const std::span<const std::byte> in = std::as_bytes(std::span(&mine_, 1));
  request_ = comm.all_gather_async(in, std::as_writable_bytes(std::span(all_)));
}

std::vector<Opening> SplitOpening::finish(Communicator& comm) {
  request_.wait();
  check(comm, all_, mine_.kind, mistake_);
  return std::move(all_);
}

}  // namespace unisono::experts
