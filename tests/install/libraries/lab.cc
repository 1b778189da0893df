// A prediction, and an error of libunisono_lab, which is not linked to libunisono.
#include <cstdio>
#include <unisono/lab.hpp>

int main() {
  const auto rows = unisono::lab::predict(unisono::Collective::all_reduce, 8, 1e6, "dgx_h100");
  bool refused = false;
  try {
    unisono::lab::simulate("{}", "no_such_machine");
  } catch (const unisono::Error& error) {
    refused = error.code() == unisono::ErrorCode::usage;
  }
  const bool right = !rows.empty() && rows.front().time_us > 0 && refused;
  std::puts(right ? "lab: right" : "lab: wrong");
  return right ? 0 : 1;
}
