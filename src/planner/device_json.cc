// Reads unisono.device/1, a device that is not built in (docs/formats/device.md).
#include "base/json.h"
#include "base/words.h"
#include "planner/device.h"

namespace unisono::planner {
namespace {

constexpr std::string_view kDeviceFormat = "unisono.device/1";
constexpr double kTeraFlops = 1e12;
constexpr double kGigabyte = 1e9;
constexpr double kMostOfFile = 1e9;
constexpr double kPcie5 = 50 * kGigabyte;  // default bandwidth between device and host

DeviceModel read_device_file(const JsonNode& file) {
  file.allow_only({"format", "name", "bf16_tflops", "f8_tflops", "f4_tflops", "memory_gb",
                   "memory_gb_per_s", "multiprocessors", "domain", "near_gb_per_s", "far_gb_per_s",
                   "host_gb_per_s", "watts", "price_per_hour"});
  if (file.at("format").text() != kDeviceFormat) {
    file.at("format").fail("the format is not " + in_quotes(kDeviceFormat));
  }
  const auto positive = [&file](std::string_view key, double unit) {
    const JsonNode node = file.at(key);
    const double value = node.number(0, kMostOfFile);
    if (value <= 0) {
      node.fail("must be above 0");
    }
    return value * unit;
  };
  const auto optional = [&](std::string_view key, double unit) {
    return file.find(key) ? positive(key, unit) : 0;
  };
  DeviceModel device{
      .name = file.at("name").text(),
      .bf16_flops = positive("bf16_tflops", kTeraFlops),
      .f8_flops = optional("f8_tflops", kTeraFlops),
      .f4_flops = optional("f4_tflops", kTeraFlops),
      .memory_bytes = positive("memory_gb", kGigabyte),
      .memory_bytes_per_s = positive("memory_gb_per_s", kGigabyte),
      .multiprocessors = static_cast<int>(
          file.at("multiprocessors").whole(1, static_cast<std::int64_t>(kMostOfFile))),
      .near_bytes_per_s = optional("near_gb_per_s", kGigabyte),
      .far_bytes_per_s = optional("far_gb_per_s", kGigabyte),
      .host_bytes_per_s =
          file.find("host_gb_per_s") ? positive("host_gb_per_s", kGigabyte) : kPcie5,
      .watts = optional("watts", 1),
      .price_per_hour = optional("price_per_hour", 1)};
  if (const auto domain = file.find("domain")) {
    device.domain = static_cast<int>(domain->whole(1, static_cast<std::int64_t>(kMostOfFile)));
  }
  if (device.name.empty()) {
    file.at("name").fail("a device needs a name");
  }
  return device;
}

}  // namespace

Parsed<DeviceModel> parse_device_json(std::string_view text) {
  return parse_json_as<DeviceModel>(text, read_device_file);
}

}  // namespace unisono::planner
