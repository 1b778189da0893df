#include "experts/agreement.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/hash.h"
#include "comm/gather.h"
#include "experts/options.h"

namespace unisono::experts {
namespace {

struct MistakeText {
  std::uint32_t code = 0;
  std::uint32_t is_wrong = 0;
  char text[504] = {};
};

std::string rank_text(std::size_t rank) {
  return "rank " + std::to_string(rank);
}

[[noreturn]] void throw_difference(
    std::size_t rank, const std::string& first, const std::string& other,
    const std::string& advice =
        "make the same calls of an exchange in the same order on all ranks") {
  throw Error(ErrorCode::mismatch,
              "experts: rank 0 " + first + ", and " + rank_text(rank) + " " + other + "\n" + advice,
              {.peer = static_cast<int>(rank)});
}

// Collective. `options` is nullptr on a rank that is not creating an exchange.
[[noreturn]] void throw_options_difference(Communicator& comm, const ExpertExchangeOptions* options,
                                           std::size_t rank) {
  const auto numbers = options == nullptr ? std::vector<std::int64_t>() : numbers_of(*options);
  const std::vector<std::size_t> counts = gather(comm, numbers.size());
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<std::int64_t> mine = numbers;
  mine.resize(most);
  std::vector<std::int64_t> all(most * counts.size());
  comm.all_gather(mine, all);
  const auto of_rank = [&](std::size_t one) {
    return std::span<const std::int64_t>(all).subspan(one * most, counts[one]);
  };
  const Difference difference = find_difference(of_rank(0), of_rank(rank));
  throw_difference(rank, difference.first, difference.other,
                   "give the same ExpertExchangeOptions on all ranks");
}

std::string part_text(std::uint32_t bits) {
  constexpr const char* kCodings[] = {"", ", coded as i8", ", coded as f8e4m3"};
  const PartForm form = PartForm::from(bits);
  return "rows of " + std::string(to_string(form.dtype)) +
         kCodings[static_cast<std::size_t>(form.coding)] +
         (form.one_a_slot ? ", one per slot" : "");
}

void compare(Communicator& comm, const ExpertExchangeOptions* options, const CallHeader& first,
             const CallHeader& other, std::size_t rank) {
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
    throw_options_difference(comm, options, rank);
  }
  for (std::size_t part = 0; part < first.parts; ++part) {
    if (first.part_forms[part] != other.part_forms[part]) {
      throw_difference(rank, "gives " + part_text(first.part_forms[part]),
                       "gives " + part_text(other.part_forms[part]),
                       "give the same kind of rows on all ranks");
    }
    if (first.part_bytes[part] != other.part_bytes[part]) {
      throw_difference(rank, "has rows of " + std::to_string(first.part_bytes[part]) + " bytes",
                       "has rows of " + std::to_string(other.part_bytes[part]),
                       "give rows of the same length on all ranks");
    }
  }
}

}  // namespace

const char* to_text(CallKind kind) {
  constexpr const char* kNames[] = {
      "ExpertExchange()",   "route()",      "dispatch()",
      "gather_list()",      "end_gather()", "combine()",
      "combine_backward()", "mask()",       "dispatch_async() or combine_async()"};
  return kNames[static_cast<std::size_t>(kind)];
}

void throw_if_any(Communicator& comm, bool any, const Mistake& mine, const char* call) {
  if (!any) {
    return;
  }
  MistakeText messages{.code = static_cast<std::uint32_t>(mine.code),
                       .is_wrong = !mine.text.empty()};
  std::memcpy(messages.text, mine.text.data(),
              std::min(mine.text.size(), sizeof messages.text - 1));
  const std::vector<MistakeText> all = gather(comm, messages);
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

// A call header that fits into one cache line, for a fast exchange. It has the first payload's
// memory, and a hash of everything that must be equal on all ranks.
struct CompactHeader {
  std::uint64_t same = 0;
  std::uint64_t own_and_wrong = 0;  // lowest bit: is_wrong
  std::uint64_t named = 0;
  SharedPlace name = {};
};
static_assert(sizeof(CompactHeader) <= 48);

// Memory of the other payloads.
struct Others {
  std::uint64_t named[kMaxPayloads - 1] = {};
  SharedPlace names[kMaxPayloads - 1] = {};
};

CompactHeader brief_of(const CallHeader& header) {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(header.kind)).add(header.routing);
  hash.add(header.parts).add(header.options);
  for (std::size_t part = 0; part < header.parts; ++part) {
    hash.add(header.part_bytes[part]).add(header.part_forms[part]);
  }
  return {.same = hash.value(),
          .own_and_wrong = header.own << 1U | header.is_wrong,
          .named = header.named[0],
          .name = header.names[0]};
}

std::vector<CallHeader> complete(Communicator& comm, const CallHeader& mine, const Mistake& mistake,
                                 const std::vector<CompactHeader>& briefs,
                                 const ExpertExchangeOptions* options) {
  const auto any = [&briefs](const auto& is_so) {
    return std::any_of(briefs.begin(), briefs.end(), is_so);
  };
  throw_if_any(comm,
               any([](const CompactHeader& brief) { return (brief.own_and_wrong & 1U) != 0; }),
               mistake, to_text(mine.kind));
  if (any([&](const CompactHeader& brief) { return brief.same != briefs[0].same; })) {
    const std::vector<CallHeader> all = gather(comm, mine);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      compare(comm, options, all[0], all[rank], rank);
    }
  }
  std::vector<CallHeader> all(briefs.size(), mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    all[rank].own = briefs[rank].own_and_wrong >> 1U;
    all[rank].named[0] = briefs[rank].named;
    all[rank].names[0] = briefs[rank].name;
  }
  if (mine.parts > 1) {
    Others others;
    std::copy_n(mine.named + 1, kMaxPayloads - 1, others.named);
    std::copy_n(mine.names + 1, kMaxPayloads - 1, others.names);
    const std::vector<Others> of_all = gather(comm, others);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      std::copy_n(of_all[rank].named, kMaxPayloads - 1, all[rank].named + 1);
      std::copy_n(of_all[rank].names, kMaxPayloads - 1, all[rank].names + 1);
    }
  }
  return all;
}

}  // namespace

std::vector<CallHeader> open(Communicator& comm, CallHeader mine, const Mistake& mistake,
                             const ExpertExchangeOptions* options) {
  mine.is_wrong = mistake.text.empty() ? 0 : 1;
  return complete(comm, mine, mistake, gather(comm, brief_of(mine)), options);
}

}  // namespace unisono::experts
