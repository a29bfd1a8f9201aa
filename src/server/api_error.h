#pragma once

#include <string>

#include "base/json.h"
#include "headway/base/error.h"

namespace headway {

/// A request that is refused or has failed, as the OpenAI API tells of it.
class ApiError : public Error {
 public:
  ApiError(int status, std::string code, const std::string& message, std::string param = "");

  int status() const { return status_; }             ///< of HTTP
  const std::string& code() const { return code_; }  ///< such as "unsupported_parameter"

  /// {"error": {"message", "type", "param", "code"}}
  Json body() const;

 private:
  int status_;
  std::string code_;
  std::string param_;
};

/// A request that its sender must change: 400. `param` is the field of the body that is wrong.
ApiError invalid_request(const std::string& param, const std::string& message);

/// What `error` means to the sender of a request: an ApiError as it is, QueueFull 429, ArgumentError 400, others 500.
ApiError api_error_of(const std::exception& error);

}  // namespace headway
