// DLPack's structures (https://dmlc.github.io/dlpack), with the layout of its specification.
#pragma once

#include <cstdint>

namespace unisono_python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : std::uint8_t {
  kInt = 0,
  kUint = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E5m2 = 12
};

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  DataType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: contiguous, row-major
  std::uint64_t byte_offset;
};

// Content of a capsule "dltensor".
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};

// Content of a capsule "dltensor_versioned".
struct ManagedVersioned {
  struct {
    std::uint32_t major;
    std::uint32_t minor;
  } version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t kReadOnly = 1;

}  // namespace unisono_python::dlpack
