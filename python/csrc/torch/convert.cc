#include "convert.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "streams.h"

namespace unisono_torch {
namespace {

using at::ScalarType;
using unisono::Dtype;
using unisono::ReduceOp;

// Maps PyTorch's element types to unisono's.
std::optional<Dtype> dtype_of(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return Dtype::boolean;
    case ScalarType::BFloat16:
      return Dtype::bf16;
    case ScalarType::Float8_e4m3fn:
      return Dtype::f8e4m3;
    case ScalarType::Float8_e5m2:
      return Dtype::f8e5m2;
    case ScalarType::Half:
    case ScalarType::Float:
    case ScalarType::Double:
      return unisono::parse_dtype("f" + std::to_string(8 * c10::elementSize(type)));
    default:
      break;
  }
  if (!c10::isIntegralType(type, false)) {
    return std::nullopt;
  }
  return unisono::parse_dtype((c10::isSignedType(type) ? "i" : "u") +
                              std::to_string(8 * c10::elementSize(type)));
}

double factor_of(const c10d::ReduceOp& op) {
  const auto* supplement = dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, "unisono: PREMUL_SUM has no factor; make it with ",
                    "torch.distributed._make_nccl_premul_sum(factor)");
  const at::Tensor& factor = supplement->tensor_factor;
  if (!factor.defined()) {
    return supplement->double_factor;
  }
  TORCH_CHECK_VALUE(factor.is_cpu() || !is_capturing(factor.device()),
                    "unisono: the host would have to read the factor of PREMUL_SUM on ",
                    factor.device(), ", which captures a graph; give a number");
  return factor.item<double>();
}

unisono::Reduction reduction_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::prod;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::BAND:
      return ReduceOp::band;
    case c10d::ReduceOp::BOR:
      return ReduceOp::bor;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::bxor;
    case c10d::ReduceOp::PREMUL_SUM:
      return unisono::Reduction::premul_sum(factor_of(op));
    default:
      TORCH_CHECK_VALUE(false, "unisono: this reduce operation does not exist");
  }
}

const char* name_of(const c10d::ReduceOp& op) {
  constexpr const char* kNames[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                    "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  return op.op_ < 9 ? kNames[op.op_] : "this operation";
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
}

bool is_linear(ReduceOp op) {
  return op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum;
}

}  // namespace

Elements elements_of(ScalarType type) {
  if (const auto dtype = dtype_of(type)) {
    return {.dtype = *dtype, .units = 1};
  }
  return {.dtype = Dtype::u8, .units = c10::elementSize(type)};
}

Reducing reducing_of(ScalarType type, const c10d::ReduceOp& op) {
  Reducing result{.reduction = reduction_of(op)};
  const ReduceOp word = result.reduction.op;
  ScalarType real = type;
  if (c10::isComplexType(type)) {
    TORCH_CHECK_TYPE(is_linear(word), "unisono: ", name_of(op), " of complex numbers (", type,
                     "); only SUM, AVG and PREMUL_SUM are defined for them");
    real = c10::toRealValueType(type);
    result.units = 2;
  }
  if ((type == ScalarType::Short || type == ScalarType::UInt16) && !dtype_of(type)) {
    real = result.as = ScalarType::Int;
  }
  if (type == ScalarType::Float8_e4m3fnuz || type == ScalarType::Float8_e5m2fnuz) {
    real = result.as = ScalarType::Float;
  }
  const auto dtype = dtype_of(real);
  TORCH_CHECK_TYPE(dtype.has_value(), "unisono: ", name_of(op), " of ", type,
                   "; this type can be moved but not reduced");
  TORCH_CHECK_TYPE(!is_bitwise(word) || !c10::isFloatingType(real), "unisono: ", name_of(op),
                   " of ", type, "; bitwise operations need integers or bool");
  TORCH_CHECK_TYPE(!(real == ScalarType::Bool && (is_linear(word) && word != ReduceOp::sum)),
                   "unisono: ", name_of(op), " of bool; convert to a numeric type first");
  result.dtype = *dtype;
  return result;
}

std::exception_ptr to_torch(const unisono::Error& error) {
  // PyTorch's tools and tests search for this text in timeout errors.
  const char* const timed_out =
      error.code() == unisono::ErrorCode::timeout ? "Timed out waiting: " : "";
  const std::string text = std::string("unisono: ") + timed_out + error.what();
  if (error.code() == unisono::ErrorCode::usage || error.code() == unisono::ErrorCode::config) {
    return std::make_exception_ptr(c10::ValueError(text));
  }
  // Omits the C++ backtrace, which takes longer to create than the detection of a lost peer.
  return std::make_exception_ptr(c10::DistBackendError(text));
}

c10d::ErrorType to_error_type(unisono::ErrorCode code) {
  switch (code) {
    case unisono::ErrorCode::timeout:
      return c10d::ErrorType::TIMEOUT;
    case unisono::ErrorCode::peer_lost:
    case unisono::ErrorCode::aborted:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

void refuse(const std::string& op, const std::string& what) {
  throw c10::ValueError("unisono:" + op + ": " + what);
}

namespace {

// gloo implements these operations by others.
struct Names {
  std::string_view op;
  std::string_view in_gloo;
  std::string_view in_dumps;
};
constexpr std::array kOtherNames = {
    Names{"_all_gather_base", "all_gather", "_all_gather_base"},
    Names{"all_gather_coalesced", "all_gather", "ALLGATHER_coalesced"},
    Names{"all_gather_into_tensor_coalesced", "all_gather", "all_gather_into_tensor_coalesced"},
    Names{"all_reduce_coalesced", "all_reduce", "allreduce_coalesced"},
    Names{"reduce_scatter", "all_reduce", "reduce_scatter"},
    Names{"_reduce_scatter_base", "all_reduce", "_reduce_scatter_base"},
    Names{"reduce_scatter_tensor_coalesced", "all_reduce", "reduce_scatter_tensor_coalesced"},
    Names{"gather_single", "gather", "gather"},
    Names{"monitored_barrier", "monitored_barrier", "barrier"},
    Names{"recvAnySource", "recvAnySource", "recv"},
    Names{"sparse_all_reduce", "sparse_all_reduce", "all_reduce"},
};

const Names* other_names(const std::string& op) {
  const auto* const found = std::find_if(kOtherNames.begin(), kOtherNames.end(),
                                         [&](const Names& names) { return names.op == op; });
  return found == kOtherNames.end() ? nullptr : found;
}

}  // namespace

std::string name_in_gloo(const std::string& op) {
  const Names* const names = other_names(op);
  return names == nullptr ? op : std::string(names->in_gloo);
}

std::string name_in_dumps(const std::string& op) {
  const Names* const names = other_names(op);
  return names == nullptr ? op : std::string(names->in_dumps);
}

}  // namespace unisono_torch
