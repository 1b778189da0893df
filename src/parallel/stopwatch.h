// Measures how long a rank waits for transfers: the communication that computation does not hide.
#pragma once

#include <chrono>

namespace unisono::parallel {

class Stopwatch {
 public:
  // Adds the duration of `work`.
  template <typename Work>
  auto time(const Work& work) {
    struct Adds {
      double& us;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      ~Adds() {
        us += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                  .count();
      }
    };
    const Adds adds{.us = us_};
    return work();
  }
  double us() const { return us_; }
  void reset() { us_ = 0; }

 private:
  double us_ = 0;
};

}  // namespace unisono::parallel
