// All of attmirror in one include. Programs that care about compile time include the headers they use
// instead; docs/architecture.md says which room holds what.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/loss.hpp>
#include <attmirror/attention/parameters.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/aligned.hpp>
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/base/progress.hpp>
#include <attmirror/base/random.hpp>
#include <attmirror/base/signals.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/base/vector_math.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npy.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/data/safetensors.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/data/torch_random.hpp>
#include <attmirror/descent/checkpoint.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/initialization.hpp>
#include <attmirror/descent/optimizer.hpp>
#include <attmirror/descent/record.hpp>
#include <attmirror/descent/run_config.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/mirror/lp_map.hpp>
#include <attmirror/mirror/mirror_map.hpp>
