// The same data in other units.
#pragma once

#include "data/dataset_arrays.hpp"

namespace attmirror::test {

inline Dataset scaled_data(const Dataset& data, double tokens, double queries) {
  NamedArrays arrays = arrays_of(data);
  const auto multiply = [&arrays](const char* name, double factor) {
    Array& array = arrays.at(name);
    std::vector<double> values = array.to_doubles(name);
    for (double& value : values) value *= factor;
    array = Array(array.shape(), values);
  };
  multiply("X", tokens);
  multiply("Z", queries);
  return make_dataset(arrays);
}

}  // namespace attmirror::test
