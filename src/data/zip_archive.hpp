// What libzip hands out, released at the end of its scope. Internal.
#pragma once

#include <memory>
#include <string_view>

#include <zip.h>

namespace attmirror {

// zip_discard() closes an archive without writing; that is right for reading, and for what failed to be written.
struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, FreeSource>;

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

inline constexpr std::string_view npy_suffix = ".npy";

}  // namespace attmirror
