// The golden runs of the fixtures: P1's Setting A for seeds 1 to 3 and Setting C, made by a reference in PyTorch.
#pragma once

#include "support/paths.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attmirror::test {

// The geometries of the golden runs, and what their arrays are called.
struct GoldenGeometry {
  double p;
  const char* tag;
};
inline constexpr GoldenGeometry golden_geometries[] = {{1.75, "p1_75"}, {2, "p2"}, {3, "p3"}};

// One slice of an array along its first axis.
inline std::vector<double> slice(const Array& array, std::ptrdiff_t index) {
  const std::vector<double> all = array.to_doubles();
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(all.size()) / array.shape().front();
  return {all.begin() + index * size, all.begin() + (index + 1) * size};
}

inline Matrix as_matrix(const std::vector<double>& values, std::ptrdiff_t rows) {
  return Eigen::Map<const Matrix>(values.data(), rows, static_cast<std::ptrdiff_t>(values.size()) / rows);
}

// A file whose arrays X, Y, Z, v and p*_ have the seed as their first axis.
class GoldenRuns {
 public:
  explicit GoldenRuns(const std::filesystem::path& path) : arrays_(load_npz(path)) {}

  std::ptrdiff_t seeds() const { return arrays_.at("X").shape()[0]; }

  Dataset data(std::ptrdiff_t seed) const {
    const Shape& shape = arrays_.at("X").shape();
    DatasetArrays data;
    data.tokens = as_matrix(slice(arrays_.at("X"), seed), shape[1] * shape[2]);
    data.lengths.assign(static_cast<std::size_t>(shape[1]), shape[2]);
    data.queries = as_matrix(slice(arrays_.at("Z"), seed), shape[1]);
    data.labels = slice(arrays_.at("Y"), seed);
    data.decoder = as_matrix(slice(arrays_.at("v"), seed), shape[3]);
    return Dataset(data);
  }

  std::vector<std::int64_t> steps(const std::string& tag, std::ptrdiff_t seed) const {
    const std::vector<double> values = slice(arrays_.at(tag + "_steps"), seed);
    return {values.begin(), values.end()};
  }

  // The weights after steps(tag, seed)[record] steps.
  Matrix W(const std::string& tag, std::ptrdiff_t seed, std::ptrdiff_t record) const {
    const Shape& shape = arrays_.at(tag + "_W").shape();
    const std::vector<double> all = slice(arrays_.at(tag + "_W"), seed);
    return Eigen::Map<const Matrix>(all.data() + record * shape[2] * shape[3], shape[2], shape[3]);
  }

  Matrix solution(const std::string& tag, std::ptrdiff_t seed) const {
    const Shape& shape = arrays_.at(tag + "_svm_W").shape();
    return as_matrix(slice(arrays_.at(tag + "_svm_W"), seed), shape[1]);
  }

  std::vector<std::int64_t> selected(const std::string& tag, std::ptrdiff_t seed) const {
    const std::vector<double> values = slice(arrays_.at(tag + "_alpha"), seed);
    return {values.begin(), values.end()};
  }

  const Array& array(const std::string& name) const { return arrays_.at(name); }

 private:
  NamedArrays arrays_;
};

inline double relative_error(const Matrix& value, const Matrix& expected) {
  return (value - expected).norm() / expected.norm();
}

}  // namespace attmirror::test
