#include "parallel/floats.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "base/as_size.h"
#include "base/dtypes.h"
#include "kernels/coded_blocks.h"
#include "kernels/kernels.h"

namespace unisono::parallel {
namespace {

std::string name_of(Dtype dtype) {
  return std::string(to_string(dtype));
}

// Calls body(a value of the element type).
template <typename Body>
void with_narrow(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::f16:
      return body(f16());
    case Dtype::bf16:
      return body(bf16());
    case Dtype::f8e4m3:
      return body(f8e4m3());
    case Dtype::f8e5m2:
      return body(f8e5m2());
    default:
      throw Error(ErrorCode::usage,
                  "floats: " + name_of(dtype) +
                      " is not a float type of at most 32 bits\nconvert the data to f32, "
                      "bf16, f16, f8e4m3 or f8e5m2");
  }
}

}  // namespace

namespace detail {
void refuse_element_type(Dtype is, Dtype asked) {
  throw Error(ErrorCode::usage, "span: the elements are " + name_of(is) + ", not " +
                                    name_of(asked) + "\ncheck dtype() before as()");
}
}  // namespace detail

bool is_narrow(Dtype dtype) {
  return is_float(dtype) && size_of(dtype) < sizeof(float);
}

void expect_float(const char* call, const char* name, Dtype has, Dtype dtype) {
  if (has != dtype || !(has == Dtype::f32 || is_narrow(has))) {
    throw Error(ErrorCode::usage, std::string(call) + ": `" + name + "` is " + name_of(has) +
                                      (has == dtype ? "" : " beside " + name_of(dtype)) +
                                      "\npass one type: f32, bf16, f16, f8e4m3 or f8e5m2");
  }
}

void convert(ConstAnySpan in, AnySpan out) {
  const bool widens = out.dtype() == Dtype::f32;
  if (in.size() != out.size() || !(widens || in.dtype() == Dtype::f32)) {
    throw Error(ErrorCode::usage,
                "convert: " + std::to_string(in.size()) + " elements of " + name_of(in.dtype()) +
                    " to " + std::to_string(out.size()) + " of " + name_of(out.dtype()) +
                    "\nmake one side f32, and give both the same number of elements");
  }
  const Dtype other = widens ? in.dtype() : out.dtype();
  if (in.size() == 0) {
    return;
  }
  if (other == Dtype::f32) {
    std::memmove(out.data(), in.data(), in.size() * sizeof(float));
    return;
  }
  if (other == Dtype::bf16) {  // bf16 has a vectorised form
    const auto bf16_blocks = kernels::find_coded_blocks(MoveCode::bf16);
    (widens ? bf16_blocks.decode : bf16_blocks.encode)(out.data(), in.data(), in.size());
    return;
  }
  with_narrow(other, [&](auto element) {
    using T = decltype(element);
    if (widens) {
      std::ranges::transform(in.as<T>(), out.as<float>().begin(), [](T v) { return to_float(v); });
    } else {
      std::ranges::transform(in.as<float>(), out.as<T>().begin(), narrowed<T>);
    }
  });
}

ReadFloats::ReadFloats(ConstAnySpan elements) {
  if (elements.dtype() == Dtype::f32) {
    span_ = elements.as<float>();
    return;
  }
  copy_.resize(elements.size());
  convert(elements, copy_);
  span_ = copy_;
}

WrittenFloats::WrittenFloats(AnySpan elements) : elements_(elements) {
  if (elements.dtype() == Dtype::f32) {
    span_ = elements.as<float>();
    return;
  }
  copy_.resize(elements.size());
  span_ = copy_;
}

void WrittenFloats::finish() const {
  if (!copy_.empty()) {
    convert(copy_, elements_);
  }
}

SumOnce::SumOnce(const Communicator& communicator, const Call& call) : call_(call) {
  const ReduceOp op = call.reduction.op;
  if (!is_narrow(call.dtype) || communicator.size() == 1 ||
      (op != ReduceOp::sum && op != ReduceOp::avg)) {
    return;
  }
  const int hosts = communicator.hosts();
  if (communicator.size() <= kernels::kMaxSources &&
      (hosts == 1 || communicator.size() <= 2 * hosts)) {
    call_.algorithm = "reproducible";
    return;
  }
  const auto ranks = as_size(communicator.size());
  std::size_t in = call.count;
  std::size_t out = call.count;
  if (call.collective == Collective::reduce_scatter) {
    in *= ranks;
  } else if (call.collective == Collective::reduce_scatter_v) {
    in = std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
    out = call.counts[as_size(communicator.rank())];
  } else if (call.collective == Collective::reduce && communicator.rank() != call.root) {
    out = 0;
  }
  in_wide_.resize(in);
  out_wide_.resize(out);
  out_ = {call.out, out, call.dtype};
  convert(ConstAnySpan(call.in, in, call.dtype), in_wide_);
  call_.in = in_wide_.data();
  call_.out = out_wide_.data();
  call_.dtype = Dtype::f32;
  call_.max_error = 0;
}

void SumOnce::finish() {
  if (!in_wide_.empty()) {
    convert(out_wide_, out_);
  }
}

}  // namespace unisono::parallel
