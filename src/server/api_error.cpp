#include "server/api_error.h"

#include <utility>

#include "headway/engine/llm_engine.h"

namespace headway {

ApiError::ApiError(int status, std::string code, const std::string& message, std::string param)
    : Error(message), status_(status), code_(std::move(code)), param_(std::move(param)) {}

Json ApiError::body() const {
  const char* type = status_ == 429 ? "rate_limit_error" : status_ < 500 ? "invalid_request_error" : "server_error";
  return {{"error",
           {{"message", what()}, {"type", type}, {"param", param_.empty() ? Json() : Json(param_)}, {"code", code_}}}};
}

ApiError invalid_request(const std::string& param, const std::string& message) {
  return ApiError(400, "invalid_value", message, param);
}

ApiError api_error_of(const std::exception& error) {
  if (const auto* api = dynamic_cast<const ApiError*>(&error)) return *api;
  if (dynamic_cast<const QueueFull*>(&error) != nullptr) return ApiError(429, "queue_full", error.what());
  if (dynamic_cast<const ArgumentError*>(&error) != nullptr) return ApiError(400, "invalid_value", error.what());
  return ApiError(500, "internal_error", error.what());
}

}  // namespace headway
