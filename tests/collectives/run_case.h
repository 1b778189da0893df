// Runs one case on one rank and compares the result with the oracle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "case.h"
#include "oracle.h"
#include "unisono/communicator.hpp"

namespace unisono::testing {

// A rank's buffers for one case, filled and surrounded by guards, and the call on them. It lives
// until check().
class CaseRun {
 public:
  CaseRun(Communicator& communicator, const Case& test_case)
      : CaseRun(test_case, communicator.rank(), &communicator) {}
  // Without a communicator, only plain memory is possible.
  CaseRun(const Case& test_case, int rank, Communicator* communicator);
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  const Call& call() const { return call_; }
  bool in_place() const { return in_place_; }
  // Returns an empty text, or the mistake in the result and its place.
  std::string check() const;
  // Overwrites the memory that a caller may overwrite after the call.
  void scribble();

 private:
  struct Memory {
    std::vector<std::byte> own;
    Region region;
    std::byte* data = nullptr;  // first byte of the buffer, after its guard
    std::size_t bytes = 0;
  };
  void allocate(Communicator* communicator, Memory& memory, std::size_t bytes);
  void fill();
  void describe_call();
  std::string check_guards(const Memory& memory, const char* name) const;
  std::string check_input() const;
  std::string check_output() const;

  Case case_;
  int rank_;
  Shape shape_;
  std::size_t element_;
  bool in_place_;
  Memory first_, second_;  // in place only the first is used
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::size_t user_element_;
  Call call_;
};

// Makes the call in one of its forms and waits until it is done.
void make_call(Communicator& communicator, const Call& call, Form form);
// Runs the whole case: fill, call in the case's form, check.
std::string run_case(Communicator& communicator, const Case& test_case);

}  // namespace unisono::testing
