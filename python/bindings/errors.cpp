#include <c10/util/Exception.h>

#include <string_view>

#include "bindings.h"
#include "headway/base/error.h"

namespace headway {
namespace {

/// Raises `type` of headway.errors with the C++ text; bytes of file names that are no UTF-8 become U+FFFD.
void raise(const char* type, std::string_view text) {
  const py::object exception = py::module_::import("headway.errors").attr(type);
  const auto message = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  PyErr_SetObject(exception.ptr(), message.ptr());
}

void translate(std::exception_ptr thrown) {
  if (!thrown) return;
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& error) {
    raise("ConfigError", error.what());
  } catch (const CheckpointError& error) {
    raise("CheckpointError", error.what());
  } catch (const LaunchError& error) {
    raise("LaunchError", error.what());
  } catch (const CommunicationError& error) {
    raise("CommunicationError", error.what());
  } catch (const ArgumentError& error) {
    raise("ArgumentError", error.what());
  } catch (const Error& error) {
    raise("Error", error.what());
  } catch (const c10::Error& error) {
    raise("Error", error.what_without_backtrace());
  }
}

}  // namespace

void bind_errors(py::module_& module) {
  py::register_local_exception_translator(translate);
}

}  // namespace headway
