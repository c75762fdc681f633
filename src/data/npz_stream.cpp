// libzip asks for the bytes of an entry when it writes the archive: a source with a function of ours behind it makes
// the array when it is opened and forgets it when it is closed.
#include "data/npz_stream.hpp"

#include "base/atomic_file.hpp"
#include "base/words.hpp"
#include "data/messages.hpp"
#include "data/npy_header.hpp"
#include "data/zip_archive.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include <fmt/format.h>
#include <zip.h>

namespace attmirror {
namespace {

// The state of one entry while the archive is written. Exceptions cannot pass through libzip, which is C: they wait
// in `failure`.
struct Feed {
  const NpzEntry& entry;
  std::string header;
  std::size_t size = 0;  // of the numbers
  std::exception_ptr& failure;
  std::vector<std::byte> bytes{};
  std::size_t at = 0;  // in header and numbers together

  int open() {
    try {
      at = 0;
      bytes = entry.make();
      if (bytes.size() != size)
        throw bad_input(fmt::format("array {} has {} bytes: its shape {} asks for {}", in_quotes(entry.name),
                                    bytes.size(), to_string(entry.shape), size));
      return 0;
    } catch (...) {
      failure = std::current_exception();
      return -1;
    }
  }
  zip_int64_t read(std::byte* to, std::size_t room) {
    std::size_t copied = 0;
    const auto copy = [&](const void* from, std::size_t available, std::size_t begin) {
      const std::size_t part = std::min(available - begin, room - copied);
      if (part > 0) std::memcpy(to + copied, static_cast<const std::byte*>(from) + begin, part);
      copied += part;
      at += part;
    };
    if (at < header.size()) copy(header.data(), header.size(), at);
    if (at >= header.size() && copied < room) copy(bytes.data(), bytes.size(), at - header.size());
    return static_cast<zip_int64_t>(copied);
  }
};

zip_int64_t serve(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& feed = *static_cast<Feed*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    case ZIP_SOURCE_OPEN:
      return feed.open();
    case ZIP_SOURCE_READ:
      return feed.read(static_cast<std::byte*>(data), length);
    case ZIP_SOURCE_CLOSE:
      std::vector<std::byte>().swap(feed.bytes);
      return 0;
    case ZIP_SOURCE_STAT: {
      auto& status = *static_cast<zip_stat_t*>(data);
      zip_stat_init(&status);
      status.size = feed.header.size() + feed.size;
      status.valid |= ZIP_STAT_SIZE;
      return sizeof status;
    }
    case ZIP_SOURCE_ERROR: {
      auto* codes = static_cast<int*>(data);
      codes[0] = ZIP_ER_READ;
      codes[1] = EIO;
      return 2 * sizeof(int);
    }
    case ZIP_SOURCE_FREE:  // the feeds are ours
      return 0;
    default:
      return -1;
  }
}

Error write_failure(const std::filesystem::path& path, zip_error_t* error) {
  return environment_error(fmt::format("cannot write {}: {}", path.string(), zip_error_strerror(error)));
}

// The names come from a file of somebody else (the database of a sweep), and the archive goes to programs that take
// them for paths: nothing that would lead out of a folder ("../x", "/x"), no backslashes, which are slashes elsewhere,
// no control characters.
void check_array_name(std::string_view name) {
  const auto refuse = [name](const char* why) {
    return bad_input(fmt::format("the array name {} {}: it cannot be the name of a file in an .npz archive",
                                 in_quotes(name), why));
  };
  if (name.find('\0') != std::string_view::npos) throw refuse("holds a NUL byte");
  if (one_line(name) != name) throw refuse("holds control characters or is not UTF-8");
  if (name.find('\\') != std::string_view::npos) throw refuse("holds a backslash");
  for (std::size_t from = 0; from <= name.size();) {
    const std::size_t slash = std::min(name.find('/', from), name.size());
    const std::string_view part = name.substr(from, slash - from);
    if (part == ".." || part == ".") throw refuse("leads to another folder");
    if (part.empty() && name.size() > 0) throw refuse("has a slash without a name beside it");
    from = slash + 1;
  }
}

void add(zip_t* archive, Feed& feed, const std::filesystem::path& path) {
  zip_source_t* source = zip_source_function(archive, serve, &feed);
  if (!source) throw write_failure(path, zip_get_error(archive));
  const std::string name = feed.entry.name + ".npy";
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  // libzip does not always say that it lacks memory: then it says nothing.
  const int code = zip_error_code_zip(zip_get_error(archive));
  if (index < 0 && (code == ZIP_ER_MEMORY || code == ZIP_ER_OK)) {
    zip_source_free(source);
    throw environment_error(fmt::format("cannot write {}: out of memory", path.string()));
  }
  if (index < 0) {
    const Error error =
        bad_input(fmt::format("cannot write {}: array {}: {}", path.string(), in_quotes(feed.entry.name),
                              zip_error_strerror(zip_get_error(archive))));
    zip_source_free(source);
    throw error;
  }
  const auto at = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t midnight = 0, first_of_january_1980 = 0x21;
  constexpr zip_uint32_t level = 1;  // what is deflated here is mostly zeros
  const zip_int32_t method =
      feed.entry.compression == NpzCompression::deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  if (zip_set_file_compression(archive, at, method, level) != 0 ||
      zip_file_set_dostime(archive, at, midnight, first_of_january_1980, 0) != 0)
    throw write_failure(path, zip_get_error(archive));
}

}  // namespace

void save_npz_entries(const std::filesystem::path& path, const std::vector<NpzEntry>& entries) {
  if (entries.empty()) return save_npz(path, {});  // libzip knows no empty archive
  AtomicFile file(path);
  if (!file.is_replaced())
    throw bad_input(fmt::format("cannot write {}: an .npz archive needs a regular file", path.string()));

  std::exception_ptr failure;
  std::vector<Feed> feeds;
  feeds.reserve(entries.size());
  for (const NpzEntry& entry : entries) {
    check_array_name(entry.name);
    const std::size_t items = element_count(entry.shape, DType::float64, entry.name);
    feeds.push_back({entry, format_npy_header(entry.descr, entry.shape, MemoryOrder::c),
                     items * entry.item_bytes, failure});
  }
  int code = 0;
  Archive archive(zip_open(file.temporary().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const Error result = write_failure(path, &error);
    zip_error_fini(&error);
    throw result;
  }
  for (Feed& feed : feeds) add(archive.get(), feed, path);
  if (zip_close(archive.get()) != 0) {
    if (failure) std::rethrow_exception(failure);
    throw write_failure(path, zip_get_error(archive.get()));
  }
  static_cast<void>(archive.release());
  file.commit();
}

}  // namespace attmirror
