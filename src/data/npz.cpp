// .npz files through libzip: what is written, and the whole of what is read (npz_reader.hpp).
#include "base/atomic_file.hpp"
#include "data/messages.hpp"
#include "data/npy_header.hpp"
#include "data/npz_reader.hpp"
#include "data/zip_archive.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>

#include <cstring>
#include <list>
#include <new>
#include <string>

#include <fmt/format.h>
#include <zip.h>

namespace attmirror {
namespace {

constexpr std::string_view empty_archive = "PK\x05\x06";

// libzip does not always say that it lacks memory: then it says nothing.
bool lacks_memory(zip_error_t* error) {
  const int code = zip_error_code_zip(error);
  return code == ZIP_ER_MEMORY || code == ZIP_ER_OK;
}

Error write_failure(zip_error_t* error) {
  // Nothing of the disk is touched here, so all but a lack of memory is due to a name.
  if (lacks_memory(error)) return out_of_memory("cannot create the .npz archive");
  return bad_input(fmt::format("cannot create the .npz archive: {}", zip_error_strerror(error)));
}

void add_entry(zip_t* archive, const std::string& key, const std::string& header, const Array& array,
               const NpzOptions& options) {
  // libzip reads the header and the numbers where they lie; it asks for pointers to non-const all the same.
  const auto fragment = [](const void* data, std::size_t size) {
    return zip_buffer_fragment_t{static_cast<zip_uint8_t*>(const_cast<void*>(data)), size};
  };
  const zip_buffer_fragment_t fragments[] = {fragment(header.data(), header.size()),
                                             fragment(array.bytes().data(), array.bytes().size())};
  Source source(zip_source_buffer_fragment(archive, fragments, array.bytes().empty() ? 1 : 2, 0));
  if (!source) throw write_failure(zip_get_error(archive));
  const std::string name = key + std::string(npy_suffix);
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source.get(), ZIP_FL_ENC_UTF_8);
  if (index < 0 && lacks_memory(zip_get_error(archive)))
    throw out_of_memory("cannot create the .npz archive");
  if (index < 0)
    throw bad_input(fmt::format("cannot create the .npz archive: entry {}: {}", in_quotes(key),
                                zip_error_strerror(zip_get_error(archive))));
  static_cast<void>(source.release());  // the archive owns it now
  const auto at = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t midnight = 0, first_of_january_1980 = 0x21;
  constexpr zip_uint32_t level = 6;
  const zip_int32_t method = options.compression == NpzCompression::deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  if (zip_set_file_compression(archive, at, method, level) != 0 ||
      zip_file_set_dostime(archive, at, midnight, first_of_january_1980, 0) != 0)
    throw write_failure(zip_get_error(archive));
}

std::vector<std::byte> read_whole(zip_source_t* source) {
  zip_stat_t status;
  if (zip_source_stat(source, &status) != 0 || !(status.valid & ZIP_STAT_SIZE) ||
      zip_source_open(source) != 0)
    throw write_failure(zip_source_error(source));
  std::vector<std::byte> content(status.size);
  const zip_int64_t got = zip_source_read(source, content.data(), content.size());
  zip_source_close(source);
  if (got != static_cast<zip_int64_t>(content.size())) throw write_failure(zip_source_error(source));
  return content;
}

}  // namespace

void NpzLimits::validate() const {
  if (max_bytes == 0) throw bad_input("max_bytes is 0: expected at least 1");
}

namespace {

NamedArrays read_all(const NpzReader& file) {
  NamedArrays arrays;
  for (const NpzReader::Entry& entry : file.entries()) arrays.emplace(entry.key, file.read(entry));
  return arrays;
}

}  // namespace

NamedArrays parse_npz(std::span<const std::byte> file, std::string_view name, const NpzLimits& limits) {
  return read_all(NpzReader(file, name, limits));
}

NamedArrays load_npz(const std::filesystem::path& path, const NpzLimits& limits) {
  return read_all(NpzReader(path, limits));
}

std::vector<std::byte> format_npz(const NamedArrays& arrays, const NpzOptions& options) try {
  if (arrays.empty()) {
    // libzip removes an archive without entries; an empty one is the 22 bytes of the end record.
    std::vector<std::byte> end_record(22);
    std::memcpy(end_record.data(), empty_archive.data(), empty_archive.size());
    return end_record;
  }
  ZipError error;
  const Source buffer(zip_source_buffer_create(nullptr, 0, 0, error.get()));
  if (!buffer) throw write_failure(error.get());
  std::list<std::string> headers;  // must outlive the archive, which reads them when it is closed
  Archive archive(zip_open_from_source(buffer.get(), ZIP_TRUNCATE, error.get()));
  if (!archive) throw write_failure(error.get());
  zip_source_keep(buffer.get());  // the archive holds one reference and we another
  for (const auto& [key, array] : arrays) {
    if (key.find('\0') != std::string::npos)
      throw bad_input(fmt::format("the array name {} holds a NUL byte", in_quotes(key)));
    add_entry(archive.get(), key, headers.emplace_back(format_npy_header(array, MemoryOrder::c)), array,
              options);
  }
  if (zip_close(archive.get()) != 0) throw write_failure(zip_get_error(archive.get()));
  static_cast<void>(archive.release());
  return read_whole(buffer.get());
} catch (const std::bad_alloc&) {
  throw out_of_memory("cannot create the .npz archive");
}

void save_npz(const std::filesystem::path& path, const NamedArrays& arrays, const NpzOptions& options) {
  write_file_atomically(path, format_npz(arrays, options));
}

}  // namespace attmirror
