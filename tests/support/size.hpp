// Tests that only repeat the same code many times are cut short under sanitizers, where each step is slow.
#pragma once

namespace attmirror::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool reduced_size = true;
#else
inline constexpr bool reduced_size = false;
#endif

}  // namespace attmirror::test
