// Token files with more to say about where they come from than a TokenSet holds. Internal.
#pragma once

#include <attmirror/data/safetensors.hpp>
#include <attmirror/deep/token_set.hpp>

#include <string>
#include <string_view>

namespace attmirror {

// Checked in both directions. Metadata of the file beyond what a TokenSet needs are let through.
Safetensors to_safetensors(const TokenSet& tokens);
TokenSet to_token_set(const Safetensors& content, std::string_view name);

// Of the arrays ids, labels and offsets, which must be there.
std::string content_fingerprint(const NamedArrays& arrays);

}  // namespace attmirror
