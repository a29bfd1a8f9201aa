#pragma once

#include <stdexcept>

namespace headway {

/// Root of every exception that Headway throws. The message names the values, and where they apply the rank, the
/// group, the tensor or the file.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A model or parallel configuration that cannot be served.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint or tokenizer file that is missing, malformed or does not fit the model.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// Launch variables that are partial or contradictory, or a rendezvous that failed.
class LaunchError : public Error {
 public:
  using Error::Error;
};

/// A collective that failed or ran into its time limit.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// An argument of a call that breaks the call's contract (a shape, a dtype, a range).
class ArgumentError : public Error {
 public:
  using Error::Error;
};

}  // namespace headway
