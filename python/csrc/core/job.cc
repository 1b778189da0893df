#include "job.h"

#include <algorithm>
#include <utility>

namespace unisono_python {
namespace {

using unisono::Dtype;
using unisono::ReduceOp;

// Returns memoryview's name for the type; types without a name are shown as integers.
const char* shown_as(Dtype dtype) {
  const char* const format = format_of(dtype);
  return format != nullptr ? format : unisono::size_of(dtype) == 2 ? "H" : "B";
}

Counts scaled(const Counts& counts, std::size_t units) {
  Counts result = counts;
  for (std::size_t& count : result) {
    count *= units;
  }
  return result;
}

}  // namespace

void UserFunction::combine(void* inout, const void* in, std::size_t count, void* context) {
  static_cast<UserFunction*>(context)->call(inout, in, count);
}

void UserFunction::call(void* inout, const void* in, std::size_t count) {
  const py::gil_scoped_acquire locked;
  if (raised_ != nullptr) {
    return;  // the outcome is already lost; peers need this rank to continue
  }
  try {
    const auto item = static_cast<py::ssize_t>(unisono::size_of(elements_.dtype));
    const std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(count)};
    const std::vector<py::ssize_t> strides{item};
    const char* format = shown_as(elements_.dtype);
    const auto target = py::memoryview::from_buffer(inout, item, format, shape, strides, false);
    const auto source =
        py::memoryview::from_buffer(const_cast<void*>(in), item, format, shape, strides, true);
    function_(target, source);
  } catch (py::error_already_set& error) {
    raised_ = std::make_unique<py::error_already_set>(std::move(error));
  }
}

void UserFunction::rethrow() {
  if (raised_ != nullptr) {
    throw py::error_already_set(std::move(*std::exchange(raised_, nullptr)));
  }
}

Job::Job(int rank, int size, const Common& common)
    : rank_(rank),
      size_(static_cast<std::size_t>(size)),
      algorithm_(common.algorithm),
      on_device_(common.on_device),
      asked_(elements_of_dtype(common.dtype)),
      elements_(asked_) {
  call.algorithm = algorithm_;
  call.timeout_ms = common.timeout_ms;
  if (asked_.has_value()) {
    call.dtype = asked_->dtype;
  }
}

void Job::refuse(const std::string& what) {
  throw py::value_error(what);
}

const Memory& Job::keep(py::handle object, Memory::Use use, const char* name) {
  Memory memory = on_device_ ? Memory::on_device(object, use, name, asked_)
                             : Memory::of(object, use, name, asked_);
  if (!elements_.has_value()) {
    elements_ = memory.elements();
    call.dtype = elements_->dtype;
    typed_by_ = name;
  } else if (memory.elements().name != elements_->name) {
    throw py::type_error(std::string(name) + " is of " + memory.elements().name + ", but " +
                         typed_by_ + " of " + elements_->name);
  }
  memory_.push_back(std::make_unique<Memory>(std::move(memory)));
  return *memory_.back();
}

const Memory& Job::read(py::handle object, const char* name) {
  const Memory& memory = keep(object, Memory::Use::read, name);
  call.in = memory.data();
  return memory;
}

const Memory& Job::write(const py::object& object, const char* name) {
  const Memory& memory = keep(object, Memory::Use::write, name);
  call.out = memory.data();
  result = object;
  return memory;
}

const Memory& Job::raw(const py::object& object, Memory::Use use) {
  memory_.push_back(std::make_unique<Memory>(Memory::bytes_of(object, use, "data")));
  result = use == Memory::Use::write ? object : py::none();
  return *memory_.back();
}

// REQUIRES: the buffers, which determine the type, are set.
void Job::set_op(const py::object& op) {
  if (!elements_->reduces) {
    throw py::type_error(elements_->name + " can be moved but not reduced; convert to int32 first");
  }
  if (py::isinstance<Premultiplied>(op)) {
    call.reduction = unisono::Reduction::premul_sum(op.cast<Premultiplied>().factor);
  } else if (py::isinstance<py::str>(op)) {
    const auto text = op.cast<std::string>();
    const auto word = unisono::parse_reduce_op(text);
    if (!word.has_value() || *word == ReduceOp::user || *word == ReduceOp::premul_sum) {
      refuse("op='" + text +
             "'; known are sum, prod, min, max, avg, band, bor, bxor, land, lor, lxor, "
             "premul_sum(factor), and functions of your own");
    }
    call.reduction = *word;
  } else if (PyCallable_Check(op.ptr()) != 0) {
    user_ = std::make_unique<UserFunction>(py::function(op), *elements_);
    call.reduction = unisono::Reduction::custom(user_->op());
  } else {
    throw py::type_error("op must be a name such as 'sum', premul_sum(factor), or a function");
  }
  const ReduceOp word = call.reduction.op;
  if (elements_->is_complex() && word != ReduceOp::sum && word != ReduceOp::avg &&
      word != ReduceOp::premul_sum) {
    throw py::type_error("complex numbers support only sum, avg and premul_sum");
  }
}

void Job::set_root(int root) {
  if (root < 0 || static_cast<std::size_t>(root) >= size_) {
    refuse("root " + std::to_string(root) + " is not a rank of this group; ranks are 0 to " +
           std::to_string(size_ - 1));
  }
  call.root = root;
}

void Job::check_parts(const char* what, const Counts& counts, const std::optional<Counts>& displs,
                      const Memory* whole, const char* name) const {
  if (counts.size() != size_ || (displs.has_value() && displs->size() != size_)) {
    refuse(std::string(what) + " must have " + std::to_string(size_) +
           " entries, one for each rank");
  }
  if (whole == nullptr) {
    return;
  }
  std::size_t end = 0;
  for (std::size_t rank = 0; rank < size_; ++rank) {
    end = displs.has_value() ? std::max(end, (*displs)[rank] + counts[rank]) : end + counts[rank];
  }
  if (end > whole->count() || (!displs.has_value() && end != whole->count())) {
    refuse(std::string(name) + " has " + std::to_string(whole->count()) + " elements, but " + what +
           (displs.has_value() ? " reach to " : " add up to ") + std::to_string(end));
  }
}

void Job::set_parts(const Counts& counts, const std::optional<Counts>& displs, const Memory* whole,
                    const char* name) {
  check_parts("counts", counts, displs, whole, name);
  const std::size_t units = elements_.has_value() ? elements_->units : 1;
  counts_ = scaled(counts, units);
  displs_ = scaled(displs.value_or(Counts{}), units);
  call.counts = counts_;
  call.displs = displs_;
}

void Job::set_received(const Counts& counts, const std::optional<Counts>& displs,
                       const Memory& whole) {
  check_parts("recv_counts", counts, displs, &whole, "out");
  recv_counts_ = scaled(counts, elements_->units);
  recv_displs_ = scaled(displs.value_or(Counts{}), elements_->units);
  call.recv_counts = recv_counts_;
  call.recv_displs = recv_displs_;
}

}  // namespace unisono_python
