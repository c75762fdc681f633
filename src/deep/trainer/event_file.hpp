// Curves for TensorBoard: the records of its event files, which are little enough to write by hand. Internal.
//
// A file is a sequence of TFRecords: the length (8 bytes), its checksum (4), the data, their checksum (4); all
// little-endian. A checksum is the CRC-32C (Castagnoli), rotated and shifted by a constant, so that the checksum of
// data which hold checksums is still of use. The data are a protocol buffer:
//   Event    1: wall_time (double), 2: step (int64), 3: file_version (text), 5: summary (Summary)
//   Summary  1: values, each {1: tag (text), 2: simple_value (float)}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attmirror {

std::uint32_t crc32c(std::string_view data);
std::uint32_t masked_crc32c(std::string_view data);

// A record of any data.
std::string event_record(std::string_view data);

// The record that an event file begins with, and one of named numbers at a step. `wall_time` is in seconds since 1970.
std::string first_event(double wall_time);
std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& values);

}  // namespace attmirror
