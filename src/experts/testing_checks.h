// Compares dispatch, combine and their gradients with the results of one process that holds all
// tokens.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/env.h"
#include "base/testing_sanitizers.h"
#include "experts/testing_shapes.h"
#include "unisono/parallel/experts.hpp"

namespace unisono::experts::testing {

// Floats in registered or ordinary memory.
struct Floats {
  Floats(Communicator& comm, std::size_t count, bool registered) : size(count) {
    if (registered) {
      region = comm.allocate(count * sizeof(float));
      data = reinterpret_cast<float*>(region.bytes().data());
    } else {
      own.resize(count, -99.0F);
      data = own.data();
    }
  }
  std::span<float> span() const { return {data, size}; }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(span()); }
  Region region;
  std::vector<float> own;
  float* data = nullptr;
  std::size_t size;
};

inline bool rows_are_right(const Shape& shape, const Routing& routing,
                           std::span<const float> rows) {
  bool right = true;
  for (std::size_t row = 0; row < routing.rows(); ++row) {
    const RowSource& source = routing.sources()[row];
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      const float expected =
          source.rank < 0 ? 0.0F : value_of(source.rank, static_cast<std::size_t>(source.token), i);
      right = right && rows[row * shape.hidden + i] == expected;
    }
  }
  return right;
}

// Returns true if the rows are in the documented order. rank_major and flat: by source rank and
// token; flat also by slot.
inline bool are_in_order(const Shape& shape, const Routing& routing) {
  const auto choices = served(shape);
  const auto k = static_cast<std::size_t>(shape.options.k);
  const bool once_a_token = shape.options.layout == ExpertLayout::rank_major;
  const std::set<int> here(routing.experts_here().begin(), routing.experts_here().end());
  std::size_t row = 0;
  for (std::size_t rank = 0; rank < choices.size(); ++rank) {
    for (std::size_t place = 0; place < choices[rank].size(); ++place) {
      const auto token = static_cast<std::int64_t>(place / k);
      const bool is_known = once_a_token && row > 0 && routing.sources()[row - 1].token == token &&
                            routing.sources()[row - 1].rank == static_cast<int>(rank);
      if (is_known || !here.contains(choices[rank][place])) {
        continue;
      }
      if (row == routing.rows()) {
        return false;
      }
      const RowSource& source = routing.sources()[row++];
      if (source.rank != static_cast<int>(rank) || source.token != token ||
          source.slot != static_cast<int>(place % k)) {
        return false;
      }
    }
  }
  return row == routing.rows();
}

// Computes the source of each row from the choices alone.
inline bool sources_are_right(const Shape& shape, const Routing& routing) {
  if (!shape.options.experts_of_rank.empty()) {
    return true;  // replicas take turns; rows and sums check them instead
  }
  if (shape.options.layout != ExpertLayout::expert_major) {
    return are_in_order(shape, routing);
  }
  const auto choices = served(shape);
  const auto k = static_cast<std::size_t>(shape.options.k);
  std::size_t row = 0;
  for (std::size_t local = 0; local < routing.experts_here().size(); ++local) {
    const auto step = static_cast<std::size_t>(shape.options.alignment);
    row = (row + step - 1) / step * step;
    if (routing.first_row(static_cast<int>(local)) != row) {
      return false;
    }
    for (std::size_t rank = 0; rank < choices.size(); ++rank) {
      for (std::size_t place = 0; place < choices[rank].size(); ++place) {
        if (choices[rank][place] == routing.experts_here()[local]) {
          const RowSource& source = routing.sources()[row++];
          if (source.rank != static_cast<int>(rank) ||
              source.token != static_cast<std::int64_t>(place / k) ||
              source.slot != static_cast<int>(place % k)) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

// Applies each row's expert. For rank_major, sums over this rank's experts.
inline void compute(const Shape& shape, const Routing& routing, std::span<const float> rows,
                    std::span<float> outputs) {
  const auto k = static_cast<std::size_t>(shape.options.k);
  const bool many = shape.options.layout == ExpertLayout::rank_major;
  for (std::size_t row = 0; row < routing.rows(); ++row) {
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      float& out = outputs[row * shape.hidden + i];
      out = 0.0F;
      for (std::size_t slot = 0; slot < (many ? k : 1); ++slot) {
        const int local = routing.experts()[many ? row * k + slot : row];
        if (local >= 0) {
          out += output_of(rows[row * shape.hidden + i],
                           routing.experts_here()[static_cast<std::size_t>(local)]);
        }
      }
    }
  }
}

// Checks the gradients. `weighted`: uses weight_of() as weights; otherwise there are none, as for
// rank_major, whose rows are sums.
inline bool gradients_are_right(Communicator& comm, ExpertExchange& exchange, const Shape& shape,
                                const Routing& routing, bool weighted, const Floats& outputs) {
  const int rank = comm.rank();
  const bool many = shape.options.layout == ExpertLayout::rank_major;
  const auto experts = served(shape)[static_cast<std::size_t>(rank)];
  const Floats gradient(comm, shape.tokens(rank) * shape.hidden, shape.registered);
  for (std::size_t i = 0; i < gradient.size; ++i) {
    gradient.data[i] = value_of(rank + 5, i / shape.hidden, i % shape.hidden);
  }
  std::vector<float> rows_gradient(routing.rows() * shape.hidden, -1.0F);
  std::vector<float> weights;
  for (std::size_t place = 0; place < experts.size() && weighted; ++place) {
    weights.push_back(weight_of(rank, place));
  }
  std::vector<float> weights_gradient(many ? 0 : experts.size(), -1.0F);
  exchange.combine_backward(routing,
                            {.out_gradient = gradient.bytes(),
                             .rows_gradient = std::as_writable_bytes(std::span(rows_gradient)),
                             .dtype = Dtype::f32,
                             .hidden = shape.hidden,
                             .weights = weights,
                             .rows = many ? std::span<const std::byte>() : outputs.bytes(),
                             .weights_gradient = weights_gradient});
  bool right = true;
  const auto k = static_cast<std::size_t>(shape.options.k);
  for (std::size_t row = 0; row < routing.rows(); ++row) {
    const RowSource& source = routing.sources()[row];
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      const auto token = static_cast<std::size_t>(std::max<std::int64_t>(source.token, 0));
      const auto place = token * k + static_cast<std::size_t>(std::max(source.slot, 0));
      const float factor = weighted ? weight_of(source.rank, place) : 1.0F;
      const float expected = source.rank < 0 ? 0.0F : factor * value_of(source.rank + 5, token, i);
      right = right && rows_gradient[row * shape.hidden + i] == expected;
    }
  }
  for (std::size_t place = 0; place < weights_gradient.size(); ++place) {
    float expected = 0.0F;
    for (std::size_t i = 0; i < shape.hidden && experts[place] >= 0; ++i) {
      expected += value_of(rank + 5, place / k, i) *
                  output_of(value_of(rank, place / k, i), experts[place]);
    }
    right = right && weights_gradient[place] == expected;
  }
  return right;
}

enum class Form { blocking, async };

// Dispatches in the given form, and calls `between` while an asynchronous call is in progress.
template <typename Between>
void dispatch_as(Form form, ExpertExchange& exchange, const Routing& routing,
                 const std::vector<Payload>& payloads, const Between& between) {
  if (form == Form::blocking) {
    exchange.dispatch(routing, payloads);
    return;
  }
  Request request = exchange.dispatch_async(routing, payloads);
  between();
  request.wait();
}

inline void combine_as(Form form, ExpertExchange& exchange, const Routing& routing,
                       const CombineRows& combine) {
  if (form == Form::blocking) {
    exchange.combine(routing, combine);
    return;
  }
  exchange.combine_async(routing, combine).wait();
}

// Returns the decoded value of each element.
inline std::vector<float> coded(std::span<const float> row, RowCoding coding) {
  std::vector<float> read(row.size());
  for (std::size_t first = 0; first < row.size(); first += 128) {
    const std::span<const float> block =
        row.subspan(first, std::min<std::size_t>(128, row.size() - first));
    float greatest = 0;
    for (const float value : block) {
      greatest = std::max(greatest, std::fabs(value));
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      read[first + i] =
          greatest == 0 ? 0.0F
          : coding == RowCoding::i8
              ? std::nearbyintf(block[i] * (127.0F / greatest)) * (greatest / 127.0F)
              : to_float(to_f8e4m3(block[i] * (448.0F / greatest))) * (greatest / 448.0F);
    }
  }
  return read;
}

// Checks dispatch and combine with coded rows.
inline void check_coded(Communicator& comm, ExpertExchange& exchange, const Routing& routing,
                        const Shape& shape, std::span<const float> tokens, RowCoding coding,
                        Form form, const std::string& what) {
  const std::size_t hidden = shape.hidden;
  std::vector<float> rows(routing.rows() * hidden, -1.0F);
  dispatch_as(form, exchange, routing,
              {{.in = std::as_bytes(tokens),
                .out = std::as_writable_bytes(std::span(rows)),
                .row_bytes = hidden * sizeof(float),
                .coding = coding,
                .dtype = Dtype::f32}},
              [] {});
  bool right = true;
  for (std::size_t row = 0; row < routing.rows(); ++row) {
    const RowSource& source = routing.sources()[row];
    std::vector<float> sent(hidden, 0.0F);
    for (std::size_t i = 0; i < hidden && source.rank >= 0; ++i) {
      sent[i] = value_of(source.rank, static_cast<std::size_t>(source.token), i);
    }
    const std::vector<float> expected = coded(sent, coding);
    right = right && std::equal(expected.begin(), expected.end(), &rows[row * hidden]);
  }
  EXPECT_TRUE(right) << what << ": coded dispatch";

  // Outputs that all ranks can compute: three times the token.
  const bool many = shape.options.layout == ExpertLayout::rank_major;
  for (float& value : rows) {
    value *= 3.0F;
  }
  std::vector<float> sums(tokens.size(), -1.0F);
  combine_as(form, exchange, routing,
             {.rows = std::as_bytes(std::span(rows)),
              .out = std::as_writable_bytes(std::span(sums)),
              .dtype = Dtype::f32,
              .hidden = hidden,
              .coding = coding});
  const auto k = static_cast<std::size_t>(shape.options.k);
  const auto experts = served(shape)[static_cast<std::size_t>(comm.rank())];
  for (std::size_t token = 0; token < tokens.size() / hidden && !many; ++token) {
    std::vector<float> once = coded(tokens.subspan(token * hidden, hidden), coding);
    for (float& value : once) {
      value *= 3.0F;
    }
    const std::vector<float> back = coded(once, coding);
    for (std::size_t i = 0; i < hidden; ++i) {
      float expected = 0.0F;
      for (std::size_t slot = 0; slot < k; ++slot) {
        expected += experts[token * k + slot] >= 0 ? back[i] : 0.0F;
      }
      right = right && sums[token * hidden + i] == expected;
    }
  }
  EXPECT_TRUE(right) << what << ": coded combine";
}

template <typename Element>
std::vector<Element> converted(const std::vector<float>& values) {
  std::vector<Element> elements;
  for (const float value : values) {
    if constexpr (std::is_same_v<Element, bf16>) {
      elements.push_back(to_bf16(value));
    } else if constexpr (std::is_same_v<Element, f16>) {
      elements.push_back(to_f16(value));
    } else {
      elements.push_back(static_cast<Element>(value));
    }
  }
  return elements;
}

// Checks three payloads in one call, and a residual equal to `out`, with rows of any float type.
template <typename Element>
void check_payloads(Communicator& comm, ExpertExchange& exchange, const Routing& routing,
                    const Shape& shape, Dtype dtype, Form form, const std::string& what) {
  const int rank = comm.rank();
  const bool many = shape.options.layout == ExpertLayout::rank_major;
  const std::size_t hidden = shape.hidden;
  const auto k = static_cast<std::size_t>(shape.options.k);
  std::vector<float> values(shape.tokens(rank) * hidden);
  std::vector<float> residual(values.size());
  std::vector<std::int64_t> numbers(shape.tokens(rank));
  std::vector<float> weights(many ? 0 : shape.tokens(rank) * k);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = value_of(rank, i / hidden, i % hidden);
    residual[i] = value_of(rank + 3, i / hidden, i % hidden);
  }
  for (std::size_t token = 0; token < numbers.size(); ++token) {
    numbers[token] = 1000 * rank + static_cast<std::int64_t>(token);
  }
  for (std::size_t place = 0; place < weights.size(); ++place) {
    weights[place] = weight_of(rank, place);
  }
  const std::vector<Element> tokens = converted<Element>(values);
  std::vector<Element> rows(routing.rows() * hidden, converted<Element>({-1.0F})[0]);
  std::vector<std::int64_t> numbers_here(routing.rows(), -1);
  std::vector<float> weights_here(routing.rows(), -9.0F);
  std::vector<Payload> payloads = {{.in = std::as_bytes(std::span(tokens)),
                                    .out = std::as_writable_bytes(std::span(rows)),
                                    .row_bytes = hidden * sizeof(Element)},
                                   {.in = std::as_bytes(std::span(numbers)),
                                    .out = std::as_writable_bytes(std::span(numbers_here)),
                                    .row_bytes = sizeof(std::int64_t)}};
  if (!many) {
    payloads.push_back({.in = std::as_bytes(std::span(weights)),
                        .out = std::as_writable_bytes(std::span(weights_here)),
                        .row_bytes = sizeof(float),
                        .one_a_slot = true});
  }
  dispatch_as(form, exchange, routing, payloads, [] {});
  bool right = true;
  for (std::size_t row = 0; row < routing.rows(); ++row) {
    const RowSource& source = routing.sources()[row];
    const auto token = static_cast<std::size_t>(std::max<std::int64_t>(source.token, 0));
    const auto place = token * k + static_cast<std::size_t>(std::max(source.slot, 0));
    const bool is_row = source.rank >= 0;
    right = right && numbers_here[row] == (is_row ? 1000 * source.rank + source.token : 0);
    right = right && (many || weights_here[row] == (is_row ? weight_of(source.rank, place) : 0.0F));
    for (std::size_t i = 0; i < hidden; ++i) {
      const float expected = is_row ? value_of(source.rank, token, i) : 0.0F;
      right = right && std::memcmp(&rows[row * hidden + i], converted<Element>({expected}).data(),
                                   sizeof(Element)) == 0;
    }
  }
  EXPECT_TRUE(right) << what << ": payloads of " << to_string(dtype);
  if (many) {  // rows are sums over a rank's experts, of which this case has none
    rows.assign(rows.size(), Element{});
  }
  std::vector<Element> out = converted<Element>(residual);
  combine_as(form, exchange, routing,
             {.rows = std::as_bytes(std::span(rows)),
              .out = std::as_writable_bytes(std::span(out)),
              .dtype = dtype,
              .hidden = hidden,
              .weights = weights,
              .residual = std::as_bytes(std::span(out))});
  const auto experts = served(shape)[static_cast<std::size_t>(rank)];
  std::vector<float> expected = residual;
  for (std::size_t i = 0; i < expected.size() && !many; ++i) {
    for (std::size_t place = i / hidden * k; place < (i / hidden + 1) * k; ++place) {
      expected[i] += experts[place] >= 0 ? weights[place] * values[i] : 0.0F;
    }
  }
  const std::vector<Element> sums = converted<Element>(expected);
  EXPECT_TRUE(std::equal(sums.begin(), sums.end(), out.begin(),
                         [](Element a, Element b) { return std::memcmp(&a, &b, sizeof a) == 0; }))
      << what << ": a residual of " << to_string(dtype);
}

// Checks gathered rows, or the expected error.
inline void check_gathered(Communicator& comm, ExpertExchange& exchange, const Routing& routing,
                           const Shape& shape, const Floats& tokens, const std::string& what) {
  bool any = false;
  for (int rank = 0; rank < comm.size(); ++rank) {
    any = any || shape.tokens(rank) != 0;
  }
  const std::string refused = comm.hosts() > 1 ? "the ranks do not share memory"
                              : any && comm.size() > 1 && !shape.registered
                                  ? "`in` is not registered memory"
                                  : "";
  const std::size_t row_bytes = shape.hidden * sizeof(float);
  try {
    const auto list = exchange.gather_list(routing, tokens.bytes(), row_bytes);
    EXPECT_EQ(refused, "") << what;
    std::vector<float> rows(routing.rows() * shape.hidden, 0.0F);
    for (std::size_t row = 0; row < list.size(); ++row) {
      EXPECT_EQ(list[row] == nullptr, routing.sources()[row].rank < 0) << what;
      if (list[row] != nullptr) {
        std::memcpy(&rows[row * shape.hidden], list[row], row_bytes);
      }
    }
    EXPECT_TRUE(rows_are_right(shape, routing, rows)) << what << ": gathered";
    exchange.end_gather();
  } catch (const Error& error) {
    EXPECT_NE(refused, "") << what << error.what();
    EXPECT_NE(std::string(error.what()).find(refused), std::string::npos) << error.what();
  }
}

// Alternates between the asynchronous and the blocking form.
inline Form form_of(const Shape& shape, int again) {
  const std::size_t number = shape.hidden + static_cast<std::size_t>(again);
  return number % 2 == 0 ? Form::async : Form::blocking;
}

inline void check_shape(Communicator& comm, const Shape& shape, const std::string& what) {
  const int rank = comm.rank();
  const auto& mine = shape.chosen[static_cast<std::size_t>(rank)];
  ExpertExchange exchange(comm, shape.options);
  const Routing routing = exchange.route(std::span(mine));
  const Floats tokens(comm, shape.tokens(rank) * shape.hidden, shape.registered);
  for (std::size_t i = 0; i < tokens.size; ++i) {
    tokens.data[i] = value_of(rank, i / shape.hidden, i % shape.hidden);
  }
  std::vector<float> weights(mine.size());
  for (std::size_t place = 0; place < weights.size(); ++place) {
    weights[place] = weight_of(rank, place);
  }
  const bool weighted = shape.options.layout != ExpertLayout::rank_major;
  for (int again = 0; again < 2; ++again) {  // uses the routing twice
    EXPECT_LE(routing.rows(), exchange.max_rows()) << what;
    const Floats rows(comm, routing.rows() * shape.hidden, shape.registered);
    const Floats outputs(comm, rows.size, shape.registered);
    const Floats sums(comm, tokens.size, false);
    const Form form = form_of(shape, again);
    dispatch_as(
        form, exchange, routing,
        {{.in = tokens.bytes(), .out = rows.bytes(), .row_bytes = shape.hidden * sizeof(float)}},
        [&] { comm.barrier(); });
    EXPECT_TRUE(rows_are_right(shape, routing, rows.span())) << what;
    compute(shape, routing, rows.span(), outputs.span());
    combine_as(form, exchange, routing,
               {.rows = outputs.bytes(),
                .out = sums.bytes(),
                .dtype = Dtype::f32,
                .hidden = shape.hidden,
                .weights = weighted ? weights : std::vector<float>()});
    const std::vector<float> expected = expected_sums(shape, rank, weighted);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sums.data)) << what;
    const bool by_weights = weighted && again == 0;
    EXPECT_TRUE(gradients_are_right(comm, exchange, shape, routing, by_weights, outputs)) << what;
    check_coded(comm, exchange, routing, shape, tokens.span(),
                again == 0 ? RowCoding::i8 : RowCoding::f8e4m3, form, what);
    if (again == 0) {
      check_payloads<bf16>(comm, exchange, routing, shape, Dtype::bf16, form, what);
      check_gathered(comm, exchange, routing, shape, tokens, what);
    } else if (shape.hidden % 2 == 0) {
      check_payloads<f16>(comm, exchange, routing, shape, Dtype::f16, form, what);
    } else {
      check_payloads<double>(comm, exchange, routing, shape, Dtype::f64, form, what);
    }
  }
  EXPECT_TRUE(sources_are_right(shape, routing)) << what;
}

// Returns UNISONO_EXPERTS_CASES, the number of cases per number of ranks; 2000 if unset.
// UNISONO_EXPERTS_FIRST is the number of the first case, to split a long run or to rerun a failed
// case.
inline int cases() {
  const auto wanted = read_env("UNISONO_EXPERTS_CASES");
  return wanted ? std::stoi(*wanted) : repetitions(2000);
}
inline int first_case() {
  const auto wanted = read_env("UNISONO_EXPERTS_FIRST");
  return wanted ? std::stoi(*wanted) : 0;
}

// Returns the failure, or "".
inline std::string check_random_shapes(Communicator& comm, int count) {
  std::mt19937 random(static_cast<unsigned>(comm.size()));
  const int first = first_case();
  for (int i = 0; i < first + count; ++i) {
    const Shape shape = draw(random, comm.size());
    if (i < first) {
      continue;
    }
    const std::string what = std::to_string(comm.size()) + " ranks, case " + std::to_string(i);
    check_shape(comm, shape, what);
    if (::testing::Test::HasFailure()) {
      return what;
    }
  }
  return {};
}

}  // namespace unisono::experts::testing
