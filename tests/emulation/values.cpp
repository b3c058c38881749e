// The numbers behind the names: compiled against our headers and, where they are, against the real ones.
#include <cuda_runtime.h>
#include <nccl.h>

static_assert(CUDART_VERSION / 1000 == 13 && NCCL_MAJOR == 2);
static_assert(cudaSuccess == 0 && cudaErrorInvalidValue == 1 && cudaErrorMemoryAllocation == 2 &&
              cudaErrorInitializationError == 3 && cudaErrorInvalidConfiguration == 9 &&
              cudaErrorInvalidPitchValue == 12 && cudaErrorInvalidMemcpyDirection == 21 &&
              cudaErrorInsufficientDriver == 35 && cudaErrorCallRequiresNewerDriver == 36 &&
              cudaErrorDevicesUnavailable == 46 && cudaErrorNoDevice == 100 && cudaErrorInvalidDevice == 101 &&
              cudaErrorNoKernelImageForDevice == 209 && cudaErrorInvalidResourceHandle == 400 &&
              cudaErrorNotReady == 600 && cudaErrorIllegalAddress == 700 &&
              cudaErrorHostMemoryAlreadyRegistered == 712 && cudaErrorHostMemoryNotRegistered == 713 &&
              cudaErrorLaunchFailure == 719 && cudaErrorNotPermitted == 800 && cudaErrorNotSupported == 801 &&
              cudaErrorSystemDriverMismatch == 803 && cudaErrorStreamCaptureUnsupported == 900 &&
              cudaErrorStreamCaptureInvalidated == 901 && cudaErrorStreamCaptureUnmatched == 903 &&
              cudaErrorStreamCaptureImplicit == 906 && cudaErrorUnknown == 999);
static_assert(cudaMemcpyHostToHost == 0 && cudaMemcpyHostToDevice == 1 && cudaMemcpyDeviceToHost == 2 &&
              cudaMemcpyDeviceToDevice == 3 && cudaMemcpyDefault == 4);
static_assert(cudaMemoryTypeUnregistered == 0 && cudaMemoryTypeHost == 1 && cudaMemoryTypeDevice == 2 &&
              cudaMemoryTypeManaged == 3);
static_assert(cudaDevAttrMaxThreadsPerBlock == 1 && cudaDevAttrMaxSharedMemoryPerBlock == 8 &&
              cudaDevAttrWarpSize == 10 && cudaDevAttrMultiProcessorCount == 16 && cudaDevAttrIntegrated == 18 &&
              cudaDevAttrCanMapHostMemory == 19 && cudaDevAttrComputeMode == 20 && cudaDevAttrPciBusId == 33 &&
              cudaDevAttrPciDeviceId == 34 && cudaDevAttrL2CacheSize == 38 &&
              cudaDevAttrMaxThreadsPerMultiProcessor == 39 && cudaDevAttrAsyncEngineCount == 40 &&
              cudaDevAttrUnifiedAddressing == 41 && cudaDevAttrPciDomainId == 50 &&
              cudaDevAttrComputeCapabilityMajor == 75 && cudaDevAttrComputeCapabilityMinor == 76 &&
              cudaDevAttrStreamPrioritiesSupported == 78 && cudaDevAttrManagedMemory == 83 &&
              cudaDevAttrPageableMemoryAccess == 88 && cudaDevAttrConcurrentManagedAccess == 89 &&
              cudaDevAttrCanUseHostPointerForRegisteredMem == 91 && cudaDevAttrHostRegisterSupported == 99 &&
              cudaDevAttrMemoryPoolsSupported == 115 && cudaDevAttrHostNumaId == 134);
static_assert(cudaStreamDefault == 0 && cudaStreamNonBlocking == 1 && cudaEventDefault == 0 &&
              cudaEventBlockingSync == 1 && cudaEventDisableTiming == 2 && cudaEventInterprocess == 4 &&
              cudaHostAllocDefault == 0 && cudaHostAllocPortable == 1 && cudaHostAllocMapped == 2 &&
              cudaHostAllocWriteCombined == 4 && cudaHostRegisterDefault == 0 && cudaHostRegisterPortable == 1 &&
              cudaHostRegisterMapped == 2 && cudaHostRegisterReadOnly == 8 && cudaMemAttachGlobal == 1);
static_assert(cudaStreamCaptureStatusNone == 0 && cudaStreamCaptureStatusActive == 1 &&
              cudaStreamCaptureStatusInvalidated == 2 && cudaStreamCaptureModeGlobal == 0 &&
              cudaStreamCaptureModeThreadLocal == 1 && cudaStreamCaptureModeRelaxed == 2);
static_assert(cudaMemPoolReuseFollowEventDependencies == 1 && cudaMemPoolReuseAllowOpportunistic == 2 &&
              cudaMemPoolReuseAllowInternalDependencies == 3 && cudaMemPoolAttrReleaseThreshold == 4 &&
              cudaMemPoolAttrReservedMemCurrent == 5 && cudaMemPoolAttrReservedMemHigh == 6 &&
              cudaMemPoolAttrUsedMemCurrent == 7 && cudaMemPoolAttrUsedMemHigh == 8 && cudaMemLocationTypeDevice == 1 &&
              cudaMemLocationTypeHost == 2 && cudaMemAllocationTypePinned == 1 && cudaMemHandleTypeNone == 0 &&
              cudaMemHandleTypePosixFileDescriptor == 1);
static_assert(ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclSystemError == 2 && ncclInternalError == 3 &&
              ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7);
static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4);
static_assert(ncclInt8 == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclUint32 == 3 && ncclInt64 == 4 &&
              ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7 && ncclFloat64 == 8 && ncclBfloat16 == 9);
static_assert(NCCL_UNIQUE_ID_BYTES == 128 && NCCL_SPLIT_NOCOLOR == -1 && sizeof(ncclUniqueId) == 128);
