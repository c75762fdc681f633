#include "support/paths.hpp"

#include <cstdlib>

namespace attmirror::test {

std::filesystem::path source_folder() { return ATTMIRROR_SOURCE_FOLDER; }
std::filesystem::path command_path() { return ATTMIRROR_COMMAND; }
std::filesystem::path example_models_path() { return ATTMIRROR_EXAMPLE_MODELS; }
std::filesystem::path mpirun_path() { return ATTMIRROR_MPIRUN; }
std::filesystem::path cmake_path() { return ATTMIRROR_CMAKE; }

SharedFile::SharedFile(std::string_view name) {
  const char* folder = std::getenv("ATTMIRROR_SHARED");
  path_ = (folder != nullptr ? std::filesystem::path(folder) : source_folder() / "../shared") / name;
}

}  // namespace attmirror::test
