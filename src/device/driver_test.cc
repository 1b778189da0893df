// Tests a driver that is missing, is another library, or does not start.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "device/cuda_driver.h"
#include "device/devices.h"
#include "device/testing_driver.h"
#include "unisono/error.hpp"

namespace unisono::device {
namespace {

std::string told(const std::string& file) {
  try {
    load_cuda_driver(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    return std::string(error.message());
  }
  return {};
}

TEST(CudaDriver, OneThatIsAbsentIsNamed) {
  const std::string text = told("libcuda-that-is-not-there.so.1");
  EXPECT_NE(text.find("libcuda-that-is-not-there.so.1 cannot be opened"), std::string::npos)
      << text;
  EXPECT_NE(text.find("set UNISONO_CUDA to its file"), std::string::npos) << text;
}

TEST(CudaDriver, OneThatLacksAFunctionIsTooOld) {
  const std::string text = told("libm.so.6");
  EXPECT_NE(text.find("libm.so.6 has no cuInit"), std::string::npos) << text;
}

TEST(CudaDriver, OneThatDoesNotStartSaysWhy) {
  const std::string file = std::getenv("UNISONO_CUDA");
  const auto fail = driver_function<void(const char*, int)>("fake_cuda_fail");
  fail("cuInit", 1);
  const std::string text = told(file);
  EXPECT_NE(text.find("does not start: CUDA_ERROR_NO_DEVICE"), std::string::npos) << text;
  EXPECT_EQ(told(file), "");
}

TEST(CudaDriver, ItsDevicesAreSaid) {
  EXPECT_EQ(devices(), std::vector<std::string>{"sm_88 with 8 processors"});
  EXPECT_EQ(why_no_devices(), "");
  const auto fail = driver_function<void(const char*, int)>("fake_cuda_fail");
  fail("cuDeviceGet", 1);
  EXPECT_EQ(why_no_devices(), "CUDA's driver shows no device");
  fail("cuDeviceGetAttribute", 1);
  EXPECT_NE(why_no_devices().find("cuDeviceGetAttribute"), std::string::npos) << why_no_devices();
}

}  // namespace
}  // namespace unisono::device
