// Reading .npz files through libzip.
//
// What an archive says of itself is checked before any of it is inflated, in this order. The packed sizes of
// all entries together cannot exceed the file, or entries overlap (the trick of bombs that use one block many
// times). A stored entry is as large as its packed bytes. Deflate turns one byte into at most 1032, since it
// spends at least two bits, one each for length and distance, on a copy of at most 258 bytes. So memory is
// bounded by 1032 times the file, and by NpzLimits. Then exactly the declared size is inflated; one more read
// must find the end, where libzip compares the checksum.
#include "data/npz_reader.hpp"

#include "base/atomic_file.hpp"
#include "data/messages.hpp"
#include "data/zip_archive.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <zip.h>

namespace attmirror {
namespace {

constexpr std::string_view entry_magic = "PK\x03\x04", end_magic = "PK\x05\x06";
constexpr std::uint64_t deflate_ratio = 1032;
// What is inflated at a time. zlib counts in 32 bits, so that one request for more than 4 GiB would be cut short.
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

using EntryFile = std::unique_ptr<zip_file_t, decltype([](zip_file_t* file) { zip_fclose(file); })>;

// What libzip reports while reading: a fault of the file, unless memory or the disk failed.
Error read_failure(const std::string& where, zip_error_t* error) {
  const int system = zip_error_system_type(error) == ZIP_ET_SYS ? zip_error_code_system(error) : 0;
  const bool machine = zip_error_code_zip(error) == ZIP_ER_MEMORY || system == EIO || system == ENOMEM ||
                       system == ESTALE || system == EMFILE || system == ENFILE;
  const std::string message = fmt::format("{}: {}", where, zip_error_strerror(error));
  return machine ? environment_error(message) : bad_input(message);
}

std::string entry_name(std::string_view file, std::string_view entry) {
  return fmt::format("{}: entry {}", file, in_quotes(entry));
}

// Reads the directory of the archive and refuses it as a whole if one entry is unacceptable.
std::vector<NpzReader::Entry> list_entries(zip_t* archive, std::uint64_t file_size, std::string_view file,
                                           const NpzLimits& limits) {
  std::vector<NpzReader::Entry> entries;
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
    if (key.ends_with(npy_suffix)) key.resize(key.size() - npy_suffix.size());

    if (!keys.emplace(key, index).second)
      throw bad_input(fmt::format("{}: the name {} occurs twice", file, in_quotes(key)));
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

// libzip says "not a zip archive" of a foreign file and of one cut short alike; a reader wants to know which.
void check_magic(std::string_view start, const std::string& file) {
  if (!start.starts_with(entry_magic) && !start.starts_with(end_magic))
    throw bad_input(fmt::format("{}: the first bytes are {}: expected a zip archive", file,
                                in_quotes(start.substr(0, 4))));
}

// An entry that is being inflated.
class OpenEntry {
 public:
  OpenEntry(zip_t* archive, const NpzReader::Entry& entry, std::string where)
      : entry_(entry), where_(std::move(where)), file_(zip_fopen_index(archive, entry.index, 0)) {
    if (!file_) throw read_failure(where_, zip_get_error(archive));
  }
  const std::string& where() const { return where_; }
  std::uint64_t left() const { return entry_.size - read_; }

  void read(std::span<std::byte> into) {
    while (!into.empty()) {
      const std::uint64_t wanted = std::min<std::uint64_t>(into.size(), piece_bytes);
      const zip_int64_t got = zip_fread(file_.get(), into.data(), wanted);
      if (got < 0) throw read_failure(where_, zip_file_get_error(file_.get()));
      if (got == 0)
        throw bad_input(fmt::format("{} ends after {} bytes: expected {}", where_, read_, entry_.size));
      read_ += static_cast<std::uint64_t>(got);
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

  // The header, which says how long it is in its first bytes.
  NpyHeader read_header() {
    std::vector<std::byte> beginning(static_cast<std::size_t>(std::min<std::uint64_t>(entry_.size, 12)));
    read(beginning);
    const std::uint64_t wanted = std::min<std::uint64_t>(npy_header_bytes(beginning), entry_.size);
    const std::size_t had = beginning.size();
    if (wanted > had) {
      beginning.resize(static_cast<std::size_t>(wanted));
      read(std::span(beginning).subspan(had));
    }
    NpyHeader header = parse_npy_header(beginning, where_);
    check_npy_size(header, entry_.size, where_);
    return header;
  }

  // After the last byte: that it was the last, and that the checksum is right.
  void finish() {
    std::byte beyond;
    const zip_int64_t more = zip_fread(file_.get(), &beyond, 1);
    if (more < 0) throw read_failure(where_, zip_file_get_error(file_.get()));
    if (more > 0)
      throw bad_input(fmt::format("{} continues after the {} bytes it claims", where_, entry_.size));
  }

 private:
  const NpzReader::Entry& entry_;
  std::string where_;
  EntryFile file_;
  std::uint64_t read_ = 0;
};

// Runs what may ask for more memory than there is.
template <class Action>
auto with_memory(const std::string& file, Action action) try {
  return action();
} catch (const std::bad_alloc&) {
  throw out_of_memory(file);
} catch (const std::length_error&) {
  throw out_of_memory(file);
}

}  // namespace

struct NpzReader::State {
  std::string name;
  std::vector<std::byte> content;  // of a pipe
  Archive archive;
  std::vector<Entry> entries;

  void open(Source source, std::uint64_t file_size, const NpzLimits& limits) {
    ZipError error;
    errno = 0;
    archive.reset(zip_open_from_source(source.get(), ZIP_RDONLY | ZIP_CHECKCONS, error.get()));
    if (!archive) {
      // Where libzip lacks memory for the directory it says "not a zip archive".
      if (errno == ENOMEM) throw out_of_memory(name);
      // The strict opening names no entry; the directory, read without its checks, often shows which one is at fault.
      ZipError ignored;
      if (const Archive lenient{zip_open_from_source(source.get(), ZIP_RDONLY, ignored.get())}) {
        static_cast<void>(source.release());
        list_entries(lenient.get(), file_size, name, limits);
      }
      const bool unopened = zip_error_code_zip(error.get()) == ZIP_ER_OPEN;
      throw read_failure(unopened ? "cannot read " + name : name + " is not a complete .npz file",
                         error.get());
    }
    static_cast<void>(source.release());  // the archive owns it now
    entries = list_entries(archive.get(), file_size, name, limits);
  }

  void open(std::span<const std::byte> file, const NpzLimits& limits) {
    check_magic({reinterpret_cast<const char*>(file.data()), file.size()}, name);
    ZipError error;
    Source source(zip_source_buffer_create(file.data(), file.size(), 0, error.get()));
    if (!source) throw read_failure(name, error.get());
    open(std::move(source), file.size(), limits);
  }

  void open(const std::filesystem::path& path, const NpzLimits& limits) {
    // A regular file stays on the disk and is read entry by entry. Pipes are read whole, as the directory of a
    // zip archive stands at its end; a missing file goes that way too, and read_file() has the words for it.
    std::error_code error;
    const std::string first = beginning_of_file(path, 4);
    const std::uint64_t size =
        std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
    if (first.empty() || error) {
      content = read_file(path);
      return open(content, limits);
    }
    check_magic(first, name);
    ZipError zip_error;
    Source source(zip_source_file_create(path.c_str(), 0, -1, zip_error.get()));
    if (!source) throw read_failure(fmt::format("cannot read {}", name), zip_error.get());
    open(std::move(source), size, limits);
  }
};

NpzReader::NpzReader(const std::filesystem::path& path, const NpzLimits& limits)
    : state_(std::make_unique<State>()) {
  state_->name = path.string();
  limits.validate();
  with_memory(state_->name, [&] { state_->open(path, limits); });
}

NpzReader::NpzReader(std::span<const std::byte> file, std::string_view name, const NpzLimits& limits)
    : state_(std::make_unique<State>()) {
  state_->name = name;
  limits.validate();
  with_memory(state_->name, [&] { state_->open(file, limits); });
}

NpzReader::~NpzReader() = default;

const std::string& NpzReader::name() const { return state_->name; }
const std::vector<NpzReader::Entry>& NpzReader::entries() const { return state_->entries; }

const NpzReader::Entry* NpzReader::find(std::string_view key) const {
  const auto found = std::ranges::find(state_->entries, key, &Entry::key);
  return found == state_->entries.end() ? nullptr : &*found;
}

std::string NpzReader::called(const Entry& entry) const { return entry_name(state_->name, entry.key); }

NpyHeader NpzReader::header(const Entry& entry) const {
  return OpenEntry(state_->archive.get(), entry, called(entry)).read_header();
}

Array NpzReader::read(const Entry& entry) const {
  return with_memory(state_->name, [&] {
    OpenEntry file(state_->archive.get(), entry, called(entry));
    NpyHeader header = file.read_header();
    std::vector<std::byte> numbers(static_cast<std::size_t>(file.left()));
    file.read(numbers);
    file.finish();
    return make_array(std::move(header), std::move(numbers), file.where());
  });
}

NpyHeader NpzReader::read_pieces(const Entry& entry, const UsePiece& use) const {
  return with_memory(state_->name, [&] {
    OpenEntry file(state_->archive.get(), entry, called(entry));
    NpyHeader header = file.read_header();
    if (header.order == MemoryOrder::fortran && header.shape.size() > 1) {
      use(0, read(entry).bytes());
      return header;
    }
    const std::size_t item = item_size(header.dtype);
    const std::size_t row =
        header.shape.empty() ? 1 : std::max<std::size_t>(1, static_cast<std::size_t>(header.shape.back()));
    // Rows in eights, where they are short enough: whoever multiplies rows by a vector then sees them as it would see
    // all of them (attention/optimal_token.hpp).
    std::size_t numbers = piece_bytes / item;
    if (8 * row <= numbers) numbers -= numbers % (8 * row);
    std::vector<std::byte> piece(
        std::min<std::size_t>(numbers * item, static_cast<std::size_t>(file.left())));
    for (std::size_t first = 0; file.left() > 0; first += piece.size() / item) {
      piece.resize(std::min<std::size_t>(piece.size(), static_cast<std::size_t>(file.left())));
      file.read(piece);
      use(first, piece);
    }
    file.finish();
    return header;
  });
}

}  // namespace attmirror
