#include "headway/weights/torch_dtype.h"

#include "headway/base/error.h"

namespace headway {

c10::ScalarType torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::BOOL:
      return c10::kBool;
    case DType::U8:
      return c10::kByte;
    case DType::I8:
      return c10::kChar;
    case DType::I16:
      return c10::kShort;
    case DType::U16:
      return c10::kUInt16;
    case DType::I32:
      return c10::kInt;
    case DType::U32:
      return c10::kUInt32;
    case DType::I64:
      return c10::kLong;
    case DType::U64:
      return c10::kUInt64;
    case DType::F16:
      return c10::kHalf;
    case DType::BF16:
      return c10::kBFloat16;
    case DType::F32:
      return c10::kFloat;
    case DType::F64:
      return c10::kDouble;
    case DType::F8_E4M3:
      return c10::kFloat8_e4m3fn;
    case DType::F8_E5M2:
      return c10::kFloat8_e5m2;
  }
  throw ArgumentError("unknown dtype");
}

}  // namespace headway
