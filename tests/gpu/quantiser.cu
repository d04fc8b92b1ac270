// An FP4 quantiser of our own, in place of FlashInfer's kernel where that one computes nothing (before SM100).
//
// It takes what FlashInfer's Python code passes to its kernel and fills the same outputs: two e2m1 values a byte (the
// even element in the low half), one scale a block of `vector` elements, padding set to zero. It is written to be
// compared with, not to be fast: one thread a block. It also runs on tensors of the host, for a rehearsal without GPU.
//
// KERNEL_ARGUMENTS is put in front of this file: how many arguments the release passes (9, 10 or 11).

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

namespace {

using tvm::ffi::Optional;
using tvm::ffi::TensorView;

struct Task {
  const uint16_t* input;  // rows x columns, the last stride is 1
  const float* global_scale;
  uint8_t* values;
  uint8_t* scales;
  int64_t rows, columns, row_stride, vector;
  int64_t padded_rows, padded_blocks;  // of the scales
  int tile_rows;                       // of a swizzled layout: 128 or 8; 0 where it is linear
  bool ue8m0, bfloat16;
};

__host__ __device__ inline float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

__host__ __device__ inline uint32_t to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Correctly rounded, whatever -use_fast_math says, so that the reference in PyTorch gives the same bytes.
__host__ __device__ inline float divide(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

__host__ __device__ inline float multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

__host__ __device__ inline float load(const Task& task, int64_t row, int64_t column) {
  uint16_t raw = task.input[row * task.row_stride + column];
  if (task.bfloat16) return from_bits(uint32_t(raw) << 16);
  __half_raw half;
  half.x = raw;
  return __half2float(__half(half));
}

__host__ __device__ inline uint8_t e2m1(float value) {  // to nearest, ties to even, saturating
  float size = value < 0 ? -value : value;
  int code = size <= 0.25f   ? 0
             : size < 0.75f  ? 1
             : size <= 1.25f ? 2
             : size < 1.75f  ? 3
             : size <= 2.5f  ? 4
             : size < 3.5f   ? 5
             : size <= 5.0f  ? 6
                             : 7;
  return uint8_t(code | (value < 0 && code ? 8 : 0));
}

__host__ __device__ inline uint8_t encode_scale(const Task& task, float scale) {
  if (!task.ue8m0) return uint8_t(__nv_cvt_float_to_fp8(scale, __NV_SATFINITE, __NV_E4M3));
  uint32_t bits = to_bits(scale);
  uint32_t exponent = (bits >> 23) + ((bits & 0x7fffff) != 0);  // the next power of two
  return uint8_t(exponent > 254 ? 254 : exponent);
}

__host__ __device__ inline float decode_scale(const Task& task, uint8_t code) {
  if (task.ue8m0) return code ? from_bits(uint32_t(code) << 23) : 0.0f;
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)));
}

// Where the scale of a block lies: row by row, or in tiles of tile_rows x 4, of which the 128 x 4 ones hold row r of a
// tile at (r % 32, r / 32).
__host__ __device__ inline int64_t scale_offset(const Task& task, int64_t row, int64_t block) {
  if (task.tile_rows == 0) return row * task.padded_blocks + block;
  int64_t tile = (row / task.tile_rows) * (task.padded_blocks / 4) + block / 4, inside = row % task.tile_rows;
  int64_t line = task.tile_rows == 128 ? (inside % 32) * 4 + inside / 32 : inside;
  return tile * task.tile_rows * 4 + line * 4 + block % 4;
}

__host__ __device__ inline void quantise_block(const Task& task, int64_t row, int64_t block) {
  uint8_t* place = task.scales + scale_offset(task, row, block);
  if (row >= task.rows || block >= task.columns / task.vector) {
    *place = 0;
    return;
  }
  int64_t first = block * task.vector;
  float largest = 0, global = task.global_scale ? *task.global_scale : 1.0f;
  for (int64_t i = 0; i < task.vector; ++i) {
    float value = load(task, row, first + i);
    largest = value > largest ? value : -value > largest ? -value : largest;
  }
  uint8_t code = encode_scale(task, multiply(global, divide(largest, 6.0f)));
  float scale = decode_scale(task, code), factor = scale > 0 ? divide(global, scale) : 0.0f;
  *place = code;
  for (int64_t i = 0; i < task.vector; i += 2) {
    uint8_t low = e2m1(multiply(load(task, row, first + i), factor));
    uint8_t high = e2m1(multiply(load(task, row, first + i + 1), factor));
    task.values[(row * task.columns + first + i) / 2] = uint8_t(low | (high << 4));
  }
}

__global__ void quantise_kernel(Task task) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < task.padded_rows * task.padded_blocks) quantise_block(task, i / task.padded_blocks, i % task.padded_blocks);
}

int64_t round_up(int64_t number, int64_t step) { return (number + step - 1) / step * step; }

void run(const Task& task, DLDevice device) {
  int64_t blocks = task.padded_rows * task.padded_blocks;
  if (device.device_type == kDLCPU) {
    for (int64_t i = 0; i < blocks; ++i) quantise_block(task, i / task.padded_blocks, i % task.padded_blocks);
    return;
  }
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  quantise_kernel<<<unsigned((blocks + 127) / 128), 128, 0, stream>>>(task);
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) TVM_FFI_THROW(RuntimeError) << cudaGetErrorString(error);
}

void fp4_quantize(TensorView input, Optional<TensorView> global_scale, TensorView values, TensorView scales,
                  int64_t vector, bool ue8m0, bool swizzled, bool layout_8x4,
#if KERNEL_ARGUMENTS >= 10
                  bool global_scale_inversed,
#endif
                  bool enable_pdl
#if KERNEL_ARGUMENTS >= 11
                  ,
                  int64_t four_over_six
#endif
) {
#if KERNEL_ARGUMENTS >= 10
  if (global_scale_inversed) TVM_FFI_THROW(ValueError) << "the stand-in knows no inversed global scale";
#endif
  DLDataType type = input.dtype();
  if (type.bits != 16) TVM_FFI_THROW(TypeError) << "the stand-in quantises float16 and bfloat16";
  if (input.stride(-1) != 1) TVM_FFI_THROW(ValueError) << "the last stride must be 1";
  Task task{};
  task.input = static_cast<const uint16_t*>(input.data_ptr());
  task.global_scale = global_scale.has_value() ? static_cast<const float*>(global_scale.value().data_ptr()) : nullptr;
  task.values = static_cast<uint8_t*>(values.data_ptr());
  task.scales = static_cast<uint8_t*>(scales.data_ptr());
  task.columns = input.size(-1);
  task.rows = input.numel() / task.columns;
  task.row_stride = input.ndim() == 2 ? input.stride(0) : task.columns;
  task.vector = vector;
  task.tile_rows = !swizzled ? 0 : layout_8x4 ? 8 : 128;
  task.padded_rows = swizzled ? round_up(task.rows, task.tile_rows) : task.rows;
  task.padded_blocks = swizzled ? round_up(task.columns / vector, 4) : task.columns / vector;
  task.ue8m0 = ue8m0;
  task.bfloat16 = type.code == kDLBfloat;
  if (scales.numel() != task.padded_rows * task.padded_blocks) TVM_FFI_THROW(ValueError) << "wrong size of the scales";
  run(task, input.device());
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(fp4_quantize, fp4_quantize);
