// The tables and polynomials of powers of floats. Made by scripts/fit_polynomials.py.
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// For mantissas m in [1, 2), by their first five bits: r near 1/m with -log2 r = t + 2^-32.4, t a multiple of 2^-16.
// Then log2 m = t + log2(1 + f) with f = m r - 1, |f| < 0.0189, and t plus an exponent is a float.
alignas(64) inline constexpr float log2_inverse[32] = {
    0x1.f8846ap-1f, 0x1.e7534ap-1f, 0x1.db5b6ep-1f, 0x1.cb47c4p-1f, 0x1.c2fb5p-1f,  0x1.b6a47p-1f,
    0x1.a87aeap-1f, 0x1.a029aap-1f, 0x1.94c47cp-1f, 0x1.8cefe8p-1f, 0x1.801192p-1f, 0x1.7694b2p-1f,
    0x1.6ecd74p-1f, 0x1.6a13b4p-1f, 0x1.608076p-1f, 0x1.5afaaep-1f, 0x1.51a73ep-1f, 0x1.498c8ep-1f,
    0x1.446c7ep-1f, 0x1.3d0852p-1f, 0x1.366308p-1f, 0x1.319292p-1f, 0x1.2d6c1p-1f,  0x1.28cc0ep-1f,
    0x1.22b142p-1f, 0x1.1b4a1ep-1f, 0x1.18deb6p-1f, 0x1.1252acp-1f, 0x1.0fcc7ep-1f, 0x1.0929b8p-1f,
    0x1.07b1d6p-1f, 0x1.03677cp-1f};

alignas(64) inline constexpr float log2_offset[32] = {
    0x1.5cp-6f,   0x1.23ep-4f,  0x1.b6dp-4f,  0x1.411p-3f,  0x1.76fp-3f,  0x1.c8e8p-3f, 0x1.14fp-2f,
    0x1.322cp-2f, 0x1.5b3p-2f,  0x1.780cp-2f, 0x1.a8bcp-2f, 0x1.cdbp-2f,  0x1.ecbp-2f,  0x1.ffd8p-2f,
    0x1.13b8p-1f, 0x1.1f62p-1f, 0x1.3382p-1f, 0x1.4574p-1f, 0x1.5108p-1f, 0x1.620ep-1f, 0x1.71b4p-1f,
    0x1.7d4p-1f,  0x1.875ap-1f, 0x1.92c6p-1f, 0x1.a22p-1f,  0x1.b52ep-1f, 0x1.bb84p-1f, 0x1.ccfp-1f,
    0x1.d3c4p-1f, 0x1.e606p-1f, 0x1.ea2p-1f,  0x1.f63ep-1f};

// log2(1 + f) = f (c0 + c1 f + c2 f^2 + c3 f^3) to 2^-34.5, and with one term less to 2^-27. As doubles: a power
// multiplies them by its exponent first.
inline constexpr double log2_series[4] = {0x1.71547624dee73p+0, -0x1.7154739933ae5p-1, 0x1.ec914c89ea23fp-2,
                                          -0x1.71c0a4304e4bfp-2};
inline constexpr double log2_short_series[3] = {0x1.715475592353ap+0, -0x1.7162187b28776p-1,
                                                0x1.ece52a38198c8p-2};

// 2^(k/16) as a float and what it misses.
alignas(64) inline constexpr float exp2_table[16] = {
    0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};

alignas(64) inline constexpr float exp2_rest[16] = {
    0x0p+0f,          0x1.9f3122p-25f,  -0x1.c15742p-27f, 0x1.ceac48p-25f, 0x1.4636e2p-25f, 0x1.824684p-25f,
    -0x1.593abcp-25f, -0x1.5bd5ecp-27f, 0x1.9fcef4p-26f,  -0x1.829fdp-25f, 0x1.15506ep-27f, 0x1.51f848p-27f,
    -0x1.a94b14p-26f, -0x1.3d56b2p-27f, -0x1.822dbcp-27f, 0x1.52486cp-27f};

// (2^h - 1)/h for |h| <= 1/32, to 2^-29.2 of 2^h.
inline constexpr float exp2_series[3] = {0x1.62e43p-1f, 0x1.ebfffap-3f, 0x1.c6b46ap-5f};

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
