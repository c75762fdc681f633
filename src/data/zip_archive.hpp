// An open archive of libzip, closed at the end of its scope without writing.
#pragma once

#include <memory>

#include <zip.h>

namespace attmirror {

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

}  // namespace attmirror
