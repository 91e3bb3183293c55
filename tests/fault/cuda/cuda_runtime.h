/*
 * cuda_runtime.h - as much of CUDA's header as the backend's C files use.
 *
 * With it they are built on machines without the toolkit; tests/fault/fake_cuda.c is its runtime.
 * Names and values are CUDA's.
 */
#ifndef GM_TESTS_FAULT_CUDA_RUNTIME_H
#define GM_TESTS_FAULT_CUDA_RUNTIME_H

#include <stddef.h>

typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;
typedef struct fake_pool *cudaMemPool_t;

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidKernelImage = 200,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorInvalidPtx = 218,
    cudaErrorJitCompilerNotFound = 221,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorJitCompilationDisabled = 223,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorSymbolNotFound = 500,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorAssert = 710,
    cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};

enum cudaDeviceAttr {
    cudaDevAttrClockRate = 13,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrCanUseHostPointerForRegisteredMem = 91
};

enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };

#define cudaEventDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaHostAllocPortable 0x01
#define cudaHostRegisterPortable 0x01
#define cudaIpcMemLazyEnablePeerAccess 0x01

typedef struct {
    char reserved[64];
} cudaIpcMemHandle_t;

typedef struct {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem, sharedMemPerMultiprocessor, sharedMemPerBlockOptin;
    size_t reservedSharedMemPerBlock;
    int major, minor, multiProcessorCount, l2CacheSize;
    int maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, regsPerMultiprocessor;
};

struct cudaFuncAttributes {
    int numRegs;
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

cudaError_t cudaHostAlloc(void **data, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *data);
cudaError_t cudaHostRegister(void *data, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *data);
cudaError_t cudaIpcOpenMemHandle(void **data, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *data);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *data, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaFuncGetName(const char **name, const void *kernel);

#endif
