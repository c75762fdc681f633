// .npz files through libzip.
//
// What an archive says of itself is checked before any of it is inflated, in this order. The packed sizes of
// all entries together cannot exceed the file, or entries overlap (the trick of bombs that use one block many
// times). A stored entry is as large as its packed bytes. Deflate turns one byte into at most 1032, since it
// spends at least two bits, one each for length and distance, on a copy of at most 258 bytes. So memory is
// bounded by 1032 times the file, and by NpzLimits. Then exactly the declared size is inflated; one more read
// must find the end, where libzip compares the checksum.
#include "base/atomic_file.hpp"
#include "data/messages.hpp"
#include "data/npy_header.hpp"
#include "data/zip_archive.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <zip.h>

namespace attmirror {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::string_view entry_magic = "PK\x03\x04", end_magic = "PK\x05\x06";
constexpr std::uint64_t deflate_ratio = 1032;

// zip_discard() closes an archive without writing; that is right for reading, and for what failed to be written.
using EntryFile = std::unique_ptr<zip_file_t, decltype([](zip_file_t* file) { zip_fclose(file); })>;
using Source = std::unique_ptr<zip_source_t, decltype([](zip_source_t* source) { zip_source_free(source); })>;

class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  ~ZipError() { zip_error_fini(&error_); }
  zip_error_t* get() { return &error_; }

 private:
  zip_error_t error_;
};

// What libzip reports while reading: a fault of the file, unless memory or the disk failed.
Error read_failure(const std::string& where, zip_error_t* error) {
  const int system = zip_error_system_type(error) == ZIP_ET_SYS ? zip_error_code_system(error) : 0;
  const bool machine = zip_error_code_zip(error) == ZIP_ER_MEMORY || system == EIO || system == ENOMEM ||
                       system == ESTALE || system == EMFILE || system == ENFILE;
  const std::string message = fmt::format("{}: {}", where, zip_error_strerror(error));
  return machine ? environment_error(message) : bad_input(message);
}

struct Entry {
  std::uint64_t index = 0;
  std::uint64_t size = 0;
  std::string key;
};

std::string entry_name(std::string_view file, std::string_view entry) {
  return fmt::format("{}: entry {}", file, in_quotes(entry));
}

// Reads the directory of the archive and refuses it as a whole if one entry is unacceptable.
std::vector<Entry> list_entries(zip_t* archive, std::uint64_t file_size, std::string_view file,
                                const NpzLimits& limits) {
  std::vector<Entry> entries;
  std::map<std::string, std::uint64_t, std::less<>> keys;
  std::uint64_t packed = 0, unpacked = 0;
  const auto count = static_cast<std::uint64_t>(zip_get_num_entries(archive, 0));
  for (std::uint64_t index = 0; index < count; ++index) {
    zip_stat_t status;
    if (zip_stat_index(archive, index, ZIP_FL_ENC_RAW, &status) != 0)
      throw read_failure(fmt::format("{}: entry {}", file, index), zip_get_error(archive));
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                    ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((status.valid & needed) != needed)
      throw bad_input(fmt::format("{}: entry {} has no complete description", file, index));
    std::string key = status.name;
    const std::string where = entry_name(file, key);
    if (key.ends_with(suffix)) key.resize(key.size() - suffix.size());

    if (!keys.emplace(key, index).second)
      throw bad_input(fmt::format("{}: the name {} is there twice", file, in_quotes(key)));
    if (status.encryption_method != ZIP_EM_NONE)
      throw bad_input(fmt::format("{} is encrypted: expected plain .npy files", where));
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
      throw bad_input(fmt::format("{} has compression method {}: expected 0 (stored) or 8 (deflated)", where,
                                  status.comp_method));
    if (status.comp_size > file_size - packed)
      throw bad_input(fmt::format("{} claims {} packed bytes: more than the {} bytes of the file leave",
                                  where, status.comp_size, file_size));
    packed += status.comp_size;
    const bool stored = status.comp_method == ZIP_CM_STORE;
    if (stored && status.size != status.comp_size)
      throw bad_input(
          fmt::format("{} is stored, but claims {} bytes in {}", where, status.size, status.comp_size));
    if (!stored && status.size / deflate_ratio > status.comp_size)
      throw bad_input(fmt::format("{} claims to inflate {} bytes to {}: deflate cannot exceed {} times",
                                  where, status.comp_size, status.size, deflate_ratio));
    if (status.size > limits.max_bytes - unpacked)
      throw bad_input(fmt::format("{} has {} bytes: with the entries before, more than the limit of {} bytes",
                                  where, status.size, limits.max_bytes));
    unpacked += status.size;
    entries.push_back({index, status.size, std::move(key)});
  }
  return entries;
}

std::vector<std::byte> inflate_entry(zip_t* archive, const Entry& entry, const std::string& where) {
  const EntryFile file(zip_fopen_index(archive, entry.index, 0));
  if (!file) throw read_failure(where, zip_get_error(archive));
  std::vector<std::byte> content(entry.size);
  std::uint64_t filled = 0;
  while (filled < entry.size) {
    const zip_int64_t got = zip_fread(file.get(), content.data() + filled, entry.size - filled);
    if (got < 0) throw read_failure(where, zip_file_get_error(file.get()));
    if (got == 0)
      throw bad_input(fmt::format("{} ends after {} bytes: expected {}", where, filled, entry.size));
    filled += static_cast<std::uint64_t>(got);
  }
  std::byte beyond;
  const zip_int64_t more = zip_fread(file.get(), &beyond, 1);
  if (more < 0) throw read_failure(where, zip_file_get_error(file.get()));
  if (more > 0) throw bad_input(fmt::format("{} goes on after the {} bytes it claims", where, entry.size));
  return content;
}

// libzip says "not a zip archive" of a foreign file and of one cut short alike; a reader wants to know which.
void check_magic(std::string_view start, const std::string& file) {
  if (!start.starts_with(entry_magic) && !start.starts_with(end_magic))
    throw bad_input(fmt::format("{}: the first bytes are {}: expected a zip archive", file,
                                in_quotes(start.substr(0, 4))));
}

NamedArrays read_archive(Source source, std::uint64_t file_size, const std::string& file,
                         const NpzLimits& limits) try {
  limits.validate();
  ZipError error;
  errno = 0;
  const Archive archive(zip_open_from_source(source.get(), ZIP_RDONLY | ZIP_CHECKCONS, error.get()));
  if (!archive) {
    // Where libzip lacks memory for the directory it says "not a zip archive".
    if (errno == ENOMEM) throw out_of_memory(file);
    // The strict opening names no entry; the directory, read without its checks, often shows which one is at fault.
    ZipError ignored;
    if (const Archive lenient{zip_open_from_source(source.get(), ZIP_RDONLY, ignored.get())}) {
      static_cast<void>(source.release());
      list_entries(lenient.get(), file_size, file, limits);
    }
    const bool unopened = zip_error_code_zip(error.get()) == ZIP_ER_OPEN;
    throw read_failure(unopened ? "cannot read " + file : file + " is no whole .npz file", error.get());
  }
  static_cast<void>(source.release());  // the archive owns it now

  NamedArrays arrays;
  for (Entry& entry : list_entries(archive.get(), file_size, file, limits)) {
    const std::string where = entry_name(file, entry.key);
    Array array = take_npy(inflate_entry(archive.get(), entry, where), where);
    arrays.emplace(std::move(entry.key), std::move(array));
  }
  return arrays;
} catch (const std::bad_alloc&) {
  throw out_of_memory(file);
} catch (const std::length_error&) {
  throw out_of_memory(file);
}

// libzip does not always say that it lacks memory: then it says nothing.
bool lacks_memory(zip_error_t* error) {
  const int code = zip_error_code_zip(error);
  return code == ZIP_ER_MEMORY || code == ZIP_ER_OK;
}

Error write_failure(zip_error_t* error) {
  // Nothing of the disk is touched here, so all but a lack of memory is due to a name.
  if (lacks_memory(error)) return out_of_memory("cannot make the .npz archive");
  return bad_input(fmt::format("cannot make the .npz archive: {}", zip_error_strerror(error)));
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
  const std::string name = key + std::string(suffix);
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source.get(), ZIP_FL_ENC_UTF_8);
  if (index < 0 && lacks_memory(zip_get_error(archive))) throw out_of_memory("cannot make the .npz archive");
  if (index < 0)
    throw bad_input(fmt::format("cannot make the .npz archive: entry {}: {}", in_quotes(key),
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

NamedArrays parse_npz(std::span<const std::byte> file, std::string_view name, const NpzLimits& limits) {
  const std::string file_name(name);
  check_magic({reinterpret_cast<const char*>(file.data()), file.size()}, file_name);
  ZipError error;
  Source source(zip_source_buffer_create(file.data(), file.size(), 0, error.get()));
  if (!source) throw read_failure(file_name, error.get());
  return read_archive(std::move(source), file.size(), file_name, limits);
}

NamedArrays load_npz(const std::filesystem::path& path, const NpzLimits& limits) {
  // A regular file stays on the disk and is read entry by entry. Pipes are read whole, as the directory of a
  // zip archive stands at its end; a missing file goes that way too, and read_file() has the words for it.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return parse_npz(read_file(path), path.string(), limits);
  std::ifstream start(path, std::ios::binary);
  if (!start) return parse_npz(read_file(path), path.string(), limits);
  char first[4] = {};
  start.read(first, sizeof first);
  check_magic({first, static_cast<std::size_t>(start.gcount())}, path.string());
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) throw environment_error(fmt::format("cannot read {}: {}", path.string(), error.message()));
  ZipError zip_error;
  Source source(zip_source_file_create(path.c_str(), 0, -1, zip_error.get()));
  if (!source) throw read_failure(fmt::format("cannot read {}", path.string()), zip_error.get());
  return read_archive(std::move(source), size, path.string(), limits);
}

std::vector<std::byte> format_npz(const NamedArrays& arrays, const NpzOptions& options) try {
  if (arrays.empty()) {
    // libzip removes an archive without entries; an empty one is the 22 bytes of the end record.
    std::vector<std::byte> end_record(22);
    std::memcpy(end_record.data(), end_magic.data(), end_magic.size());
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
  throw out_of_memory("cannot make the .npz archive");
}

void save_npz(const std::filesystem::path& path, const NamedArrays& arrays, const NpzOptions& options) {
  write_file_atomically(path, format_npz(arrays, options));
}

}  // namespace attmirror
