#include "bench/moe_work.h"

#include <span>

namespace unisono::cli {
namespace {

float weight_of(std::size_t place) {
  return place % 2 == 0 ? 1.0F : 0.5F;
}

}  // namespace

std::uint16_t value_of(int rank, std::size_t token, std::size_t i) {
  return to_bf16(static_cast<float>((static_cast<std::size_t>(rank) * 5 + token * 3 + i) % 13) - 6)
      .bits;
}

std::uint16_t output_of(std::uint16_t value, int expert) {
  return to_bf16(to_float(bf16{value}) * static_cast<float>(expert + 1)).bits;
}

MoeWork::MoeWork(Communicator& communicator, const MoeCase& measured)
    : comm(communicator),
      row(measured),
      row_bytes(measured.hidden * 2),
      chosen(draw_routing(measured, communicator.rank())),
      exchange(communicator, {.experts = measured.experts, .k = measured.k}),
      routing(exchange.route(std::span<const std::int32_t>(chosen))),
      tokens(communicator.allocate(measured.tokens * row_bytes)),
      rows(communicator.allocate(routing.rows() * row_bytes)),
      out(measured.tokens * row_bytes),
      weights(chosen.size()) {
  auto* values = reinterpret_cast<std::uint16_t*>(tokens.bytes().data());
  for (std::size_t i = 0; i < row.tokens * row.hidden; ++i) {
    values[i] = value_of(comm.rank(), i / row.hidden, i % row.hidden);
  }
  for (std::size_t place = 0; place < weights.size(); ++place) {
    weights[place] = weight_of(place);
  }
}

}  // namespace unisono::cli
