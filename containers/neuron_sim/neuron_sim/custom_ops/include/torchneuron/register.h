// NEURON_LIBRARY(name, m) { m.def("op", &shape_function, "kernel_function"); }
// AWS Neuron documentation, "Neuron Custom C++ Operators Developer Guide".
#pragma once
#include <memory>
#include <string>
#include <torch/library.h>
#include <torch/types.h>

namespace neuron_sim {

// Registers the compute function of a name; false if there is none. `build.py` writes it: it knows names and signatures.
inline bool define(torch::Library& library, const char* op, const std::string& kernel);

// What was wrong while the library was loaded; at that time no exception may be thrown.
inline std::string& problem() {
  static std::string text;
  return text;
}

class Library {
 public:
  explicit Library(torch::Library& library) : library_(library) {}

  // The shape function is an operator of its own: its tensor arguments may have other types than the compute function's.
  template <class ShapeFunction>
  Library& def(const char* op, ShapeFunction shape, const char* kernel) {
    library_.def((std::string("shape_of_") + op).c_str(), torch::dispatch(c10::DispatchKey::Meta, shape));
    if (!define(library_, op, kernel))
      problem() += std::string("NEURON_LIBRARY names ") + kernel +
          ", which the compute sources do not define with torch::Tensor, torch::Scalar, double or int64_t as "
          "arguments. ";
    return *this;
  }

 private:
  torch::Library& library_;
};

// Null if torch refuses it, for example because another library, or two operators, have the same name.
inline std::unique_ptr<torch::Library> register_library(const char* name, void (*define_all)(Library&)) try {
  auto library = std::make_unique<torch::Library>(torch::Library::DEF, name, std::nullopt, __FILE__, __LINE__);
  Library defined(*library);
  define_all(defined);
  return library;
} catch (const c10::Error& error) {
  problem() += error.what_without_backtrace();
  return nullptr;
}

}  // namespace neuron_sim

#define NEURON_LIBRARY(ns, m)                                    \
  static void neuron_library_of_##ns(neuron_sim::Library&);      \
  static const std::unique_ptr<torch::Library> registered_##ns = \
      neuron_sim::register_library(#ns, &neuron_library_of_##ns); \
  void neuron_library_of_##ns(neuron_sim::Library& m)
