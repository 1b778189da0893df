// A call with its checked arguments from Python, which it keeps alive until the call has ended.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory.h"

namespace unisono_python {

using Counts = std::vector<std::size_t>;

// A reduce operation with a number: premul_sum(0.5).
struct Premultiplied {
  double factor = 1.0;
};

// A Python function as a reduce operation. Any thread of the communicator calls it.
class UserFunction {
 public:
  UserFunction(py::function function, Elements elements)
      : function_(std::move(function)), elements_(std::move(elements)) {}
  unisono::UserOp op() { return {.combine = &UserFunction::combine, .context = this}; }
  // Throws the exception that the function has raised. REQUIRES: the GIL.
  void rethrow();

 private:
  static void combine(void* inout, const void* in, std::size_t count, void* context);
  void call(void* inout, const void* in, std::size_t count);

  py::function function_;
  Elements elements_;
  std::unique_ptr<py::error_already_set> raised_;
};

// Arguments of all calls besides their buffers.
struct Common {
  py::object dtype = py::none();
  std::string algorithm = {};
  int timeout_ms = -1;
  bool on_device = false;  // buffers are GPU memory
};

class Job {
 public:
  Job(int rank, int size, const Common& common);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  unisono::Call call;
  py::object result = py::none();  // object that contains the outcome, returned for convenience

  int rank() const { return rank_; }
  std::size_t size() const { return size_; }
  // Add a buffer. The first buffer determines the type; throw TypeError if another buffer has a
  // different type.
  const Memory& read(py::handle object, const char* name);
  const Memory& write(const py::object& object, const char* name);
  // Adds a buffer of a message, which is sent as bytes of any type.
  const Memory& raw(const py::object& object, Memory::Use use);
  void set_op(const py::object& op);
  void set_root(int root);
  // Sets the count, given in Python's elements.
  void set_count(std::size_t count) { call.count = count * elements_->units; }
  // Sets counts and displacements, also given in Python's elements. Without `displs`, parts are
  // contiguous. Throws if the buffer is too small.
  void set_parts(const Counts& counts, const std::optional<Counts>& displs, const Memory* whole,
                 const char* name);
  void set_received(const Counts& counts, const std::optional<Counts>& displs, const Memory& whole);
  [[noreturn]] static void refuse(const std::string& what);

  // REQUIRES: the GIL, and the call has ended.
  void rethrow_user_error() {
    if (user_ != nullptr) {
      user_->rethrow();
    }
  }

 private:
  const Memory& keep(py::handle object, Memory::Use use, const char* name);
  void check_parts(const char* what, const Counts& counts, const std::optional<Counts>& displs,
                   const Memory* whole, const char* name) const;

  int rank_;
  std::size_t size_;
  std::string algorithm_;
  bool on_device_;
  std::optional<Elements> asked_;
  std::optional<Elements> elements_;
  const char* typed_by_ = "";
  std::vector<std::unique_ptr<Memory>> memory_;
  std::unique_ptr<UserFunction> user_;
  Counts counts_;
  Counts displs_;
  Counts recv_counts_;
  Counts recv_displs_;
};

}  // namespace unisono_python
