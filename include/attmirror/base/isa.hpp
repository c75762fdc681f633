// Run-time choice of the instruction set, so that one binary runs on every x86-64 machine.
//
// The hot kernels are compiled once per set: for all three, or only for the best set of the machine that
// compiles them (ATTMIRROR_KERNELS=native). The best set that the processor supports is chosen once, at first
// use; the environment variable ATTMIRROR_ISA, the option --isa and set_isa() force another. Results are the
// same to the bit on one instruction set and agree to rounding across sets, so a run records which one it used.
#pragma once

#include <string_view>

namespace attmirror {

// The instruction sets that kernels are compiled for.
enum class Isa { sse2, avx2, avx512 };

std::string_view to_string(Isa isa);

// Reads "sse2", "avx2" or "avx512"; throws Error (bad input) for another word.
Isa parse_isa(std::string_view name);

// The sets that this build has kernels for and that this processor and operating system can run. best_isa()
// throws Error (environment) if there is none, as in a build for another machine's processor.
bool is_supported(Isa isa);
Isa best_isa();

// The set that kernels use at the moment.
Isa active_isa();

// Forces a set for the whole process; throws Error (bad input) if it is not supported. Call it before any
// computation: objects that have already chosen their kernels keep them.
void set_isa(Isa isa);

}  // namespace attmirror
