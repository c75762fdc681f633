// The one macro CUDA cannot do without: what runs on both sides must say so. Internal.
#pragma once

#if defined(__CUDACC__)
#define ATTMIRROR_HOST_DEVICE __host__ __device__
#else
#define ATTMIRROR_HOST_DEVICE
#endif
