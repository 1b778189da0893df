#include "experts/rows.h"

#include <cstring>
#include <exception>
#include <numeric>

#include "kernels/kernels.h"

namespace unisono::experts {

bool resize(std::vector<std::byte>& memory, std::size_t bytes, Mistake& mistake) {
  try {
    memory.resize(bytes);
    return true;
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    mistake = {.code = ErrorCode::resource,
               .text = "it has no memory for " + std::to_string(bytes) +
                       " bytes of rows\ngive fewer tokens at once"};
    return false;
  }
}

void prepare_rows(SentRows& rows, std::size_t sent_bytes, std::size_t own_bytes, Mistake& mistake) {
  if (mistake.text.empty() && resize(rows.outgoing, sent_bytes, mistake)) {
    resize(rows.own, own_bytes, mistake);
  }
}

std::span<std::byte> shared_memory(detail::ExpertExchangeState& state, Region& region,
                                   std::size_t bytes, Mistake& mistake) {
  try {
    if (region.bytes().size() < bytes) {
      region = Region();
      region = state.comm->allocate(bytes + bytes / 4);
    }
  } catch (const Error& error) {
    mistake = {.code = error.code(), .text = error.what()};
    return {};
  }
  if (bytes != 0 && state.comm->place_of(region.bytes().data(), bytes).region == 0) {
    mistake = {.code = ErrorCode::resource,
               .text =
                   "its peers cannot be informed of new memory\nmake calls on all ranks regularly "
                   "while memory is registered"};
    return {};
  }
  return region.bytes().first(bytes);
}

kernels::CodedRowFunctions functions_of(RowCoding coding, Dtype dtype) {
  return kernels::find_coded_rows(dtype, coding == RowCoding::i8 ? Dtype::i8 : Dtype::f8e4m3);
}

void expect_coding(Mistake& mistake, RowCoding coding, Dtype dtype, std::size_t row_bytes) {
  if (coding == RowCoding::none || !mistake.text.empty()) {
    return;
  }
  if (functions_of(coding, dtype).encode == nullptr) {
    mistake.text = "rows of " + std::string(to_string(dtype)) +
                   " cannot be encoded\nuse bf16, f16 or f32, or no coding";
  } else if (row_bytes % size_of(dtype) != 0) {
    mistake.text = "rows of " + std::to_string(row_bytes) + " bytes are not a whole number of " +
                   std::string(to_string(dtype)) + "\ngive the dtype of the rows";
  }
}

RowTransfer row_transfer_of(detail::ExpertExchangeState& state, std::size_t part,
                            std::span<const std::byte> rows, std::size_t row_bytes,
                            RowCoding coding, Dtype dtype, Mistake& mistake) {
  RowTransfer transfer{
      .in = rows,
      .row_bytes = row_bytes,
      .out_row_bytes = row_bytes,
      .form = {.dtype = dtype, .coding = row_bytes == 0 ? RowCoding::none : coding}};
  if (transfer.form.coding == RowCoding::none) {
    return transfer;
  }
  transfer.functions = functions_of(coding, dtype);
  transfer.count = row_bytes / size_of(dtype);
  if (state.hosts.single()) {
    transfer.is_rounded = true;
    return transfer;
  }
  transfer.row_bytes = kernels::coded_bytes(transfer.count);
  const std::size_t count = rows.size() / row_bytes;
  std::span<std::byte> coded;
  if (!state.is_read() || count == 0) {
    resize(state.coded[part], count * transfer.row_bytes, mistake);
    coded = state.coded[part];
  } else {
    coded = shared_memory(state, state.staged[part], count * transfer.row_bytes, mistake);
  }
  if (!mistake.text.empty()) {
    return transfer;
  }
  for (std::size_t row = 0; row < count; ++row) {
    transfer.functions.encode(coded.data() + row * transfer.row_bytes,
                              rows.data() + row * row_bytes, transfer.count);
  }
  transfer.in = coded;
  return transfer;
}

SharedPlace publish(detail::ExpertExchangeState& state, std::size_t part,
                    std::span<const std::byte> data, Mistake& mistake) {
  if (!state.is_read() || data.empty()) {
    return {};
  }
  const SharedPlace name = state.comm->place_of(data.data(), data.size());
  if (name.region != 0) {
    return name;
  }
  const std::span<std::byte> staged =
      shared_memory(state, state.staged[part], data.size(), mistake);
  if (!mistake.text.empty()) {
    return {};
  }
  kernels::copy(staged.data(), data.data(), data.size(), kernels::Store::cached);
  return state.comm->place_of(staged.data(), data.size());
}

const std::byte* memory_of(detail::ExpertExchangeState& state, int rank, const SharedPlace& place,
                           std::size_t bytes) {
  const std::byte* const found = state.comm->peer_memory(rank, place, bytes);
  if (found == nullptr) {
    const std::string text = "experts: memory of rank " + std::to_string(rank) +
                             " cannot be mapped here\ncheck the limits on memory and on "
                             "mappings (vm.max_map_count)";
    state.comm->abort(text);
    throw Error(ErrorCode::resource, text, {.peer = rank});
  }
  return found;
}

std::vector<const std::byte*> find_published(detail::ExpertExchangeState& state,
                                             std::span<const CallHeader> headers, std::size_t part,
                                             const std::byte* mine) {
  std::vector<const std::byte*> found(headers.size(), nullptr);
  for (const int rank : state.hosts.here()) {
    const auto i = static_cast<std::size_t>(rank);
    const SharedPlace& name = headers[i].names[part];
    if (rank == state.comm->rank()) {
      found[i] = mine;
    } else if (name.address != 0) {
      found[i] = memory_of(state, rank, name, headers[i].named[part]);
    }
  }
  return found;
}

void start_rows(detail::ExpertExchangeState& state,
                std::span<const std::vector<const std::byte*>> to_ranks,
                std::span<const std::size_t> rows_from_ranks, std::size_t row_bytes,
                SentRows& rows) {
  const std::size_t ranks = to_ranks.size();
  rows.send.resize(ranks);
  rows.receive.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    rows.send[rank] = to_ranks[rank].size() * row_bytes;
    rows.receive[rank] = rows_from_ranks[rank] * row_bytes;
  }
  rows.outgoing.resize(std::accumulate(rows.send.begin(), rows.send.end(), std::size_t{0}));
  std::byte* next = rows.outgoing.data();
  for (const auto& of_rank : to_ranks) {
    for (const std::byte* row : of_rank) {
      std::memcpy(next, row, row_bytes);
      next += row_bytes;
    }
  }
  rows.request =
      state.comm->all_to_all_v_async(rows.outgoing, rows.send, rows.incoming, rows.receive);
}

std::vector<const std::byte*> finish_rows(SentRows& rows) {
  rows.request.wait();
  std::vector<const std::byte*> first(rows.receive.size());
  const std::byte* from = rows.incoming.data();
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    first[rank] = from;
    from += rows.receive[rank];
  }
  return first;
}

}  // namespace unisono::experts
