// Parameters and records as named arrays, for the files of this room. Internal.
#pragma once

#include "data/text_array.hpp"
#include <attmirror/attention/parameters.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/descent/record.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The numbers of a block in C order; empty when the parameters lack it.
std::span<const double> block_values(const Parameters& parameters, const Block& block);

// Whether any block is there.
bool has_weights(const Parameters& parameters);

// (rows, cols) of a matrix; (size) of a vector.
Shape block_shape(const Parameters& parameters, const Block& block);

// Adds PREFIX + name for each of `blocks` that is not empty; without them, for each block that is there. Throws Error
// (bad input) where an array of that name is there already.
void put_blocks(NamedArrays& arrays, std::string_view prefix, const Parameters& parameters);
void put_blocks(NamedArrays& arrays, std::string_view prefix, const Parameters& parameters,
                std::span<const Block> blocks);

// Adds PREFIX + name for each of `blocks` that `like` has: the block of all records, first axis = record.
void put_stacked(NamedArrays& arrays, std::string_view prefix, std::span<const Record* const> records,
                 const Parameters& like, std::span<const Block> blocks);

// The blocks that have an array PREFIX + name: for prefixes under which all names of blocks are blocks.
std::vector<Block> blocks_under(const NamedArrays& arrays, std::string_view prefix);

// What put_blocks() wrote of these blocks; one without an array stays empty. An array of one axis is a vector. Throws
// Error (bad input) for a wrong shape or type.
Parameters get_blocks(const NamedArrays& arrays, std::string_view prefix, std::span<const Block> blocks);

// What put_stacked() wrote of these blocks: one set of them for each of `count` records.
std::vector<Parameters> get_stacked(const NamedArrays& arrays, std::string_view prefix, std::size_t count,
                                    std::span<const Block> blocks);

// Adds PREFIX + name for each metric of the records, an array with an entry a record.
void put_metrics(NamedArrays& arrays, std::string_view prefix, std::span<const Record> records);

// What put_metrics() wrote: the metrics of each of `count` records, from all arrays of that prefix and length whose
// names `is_other` does not claim.
std::vector<std::vector<Metric>> get_metrics(const NamedArrays& arrays, std::string_view prefix,
                                             std::size_t count,
                                             const std::function<bool(const std::string&)>& is_other);

// The array, or Error (bad input): "array step is missing".
const Array& get_array(const NamedArrays& arrays, const std::string& name);
std::string get_text(const NamedArrays& arrays, const std::string& name);
std::vector<double> get_doubles(const NamedArrays& arrays, const std::string& name, std::size_t count);
std::vector<std::int64_t> get_int64(const NamedArrays& arrays, const std::string& name, std::size_t count);

}  // namespace attmirror
