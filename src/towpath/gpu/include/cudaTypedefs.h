// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types of functions of the driver, by the version that introduced them.

#include "cuda.h"

typedef decltype(&cuDeviceGet) PFN_cuDeviceGet_v2000;
typedef decltype(&cuDeviceGetAttribute) PFN_cuDeviceGetAttribute_v2000;
typedef decltype(&cuDeviceGetUuid) PFN_cuDeviceGetUuid_v9020;
typedef decltype(&cuGetErrorString) PFN_cuGetErrorString_v6000;
typedef decltype(&cuGetErrorName) PFN_cuGetErrorName_v6000;
typedef decltype(&cuMemGetAddressRange) PFN_cuMemGetAddressRange_v3020;
typedef decltype(&cuCtxCreate) PFN_cuCtxCreate_v3020;
typedef decltype(&cuCtxDestroy) PFN_cuCtxDestroy_v4000;
typedef decltype(&cuCtxGetCurrent) PFN_cuCtxGetCurrent_v4000;
typedef decltype(&cuCtxSetCurrent) PFN_cuCtxSetCurrent_v4000;
typedef decltype(&cuCtxGetDevice) PFN_cuCtxGetDevice_v2000;
typedef decltype(&cuPointerGetAttribute) PFN_cuPointerGetAttribute_v4000;
typedef decltype(&cuLaunchKernel) PFN_cuLaunchKernel_v4000;
typedef decltype(&cuLaunchKernelEx) PFN_cuLaunchKernelEx_v11060;
typedef decltype(&cuMemAddressReserve) PFN_cuMemAddressReserve_v10020;
typedef decltype(&cuMemAddressFree) PFN_cuMemAddressFree_v10020;
typedef decltype(&cuMemCreate) PFN_cuMemCreate_v10020;
typedef decltype(&cuMemGetAllocationGranularity) PFN_cuMemGetAllocationGranularity_v10020;
typedef decltype(&cuMemExportToShareableHandle) PFN_cuMemExportToShareableHandle_v10020;
typedef decltype(&cuMemImportFromShareableHandle) PFN_cuMemImportFromShareableHandle_v10020;
typedef decltype(&cuMemMap) PFN_cuMemMap_v10020;
typedef decltype(&cuMemRelease) PFN_cuMemRelease_v10020;
typedef decltype(&cuMemRetainAllocationHandle) PFN_cuMemRetainAllocationHandle_v11000;
typedef decltype(&cuMemSetAccess) PFN_cuMemSetAccess_v10020;
typedef decltype(&cuMemUnmap) PFN_cuMemUnmap_v10020;
typedef decltype(&cuMemGetAllocationPropertiesFromHandle)
    PFN_cuMemGetAllocationPropertiesFromHandle_v10020;
typedef decltype(&cuMemGetHandleForAddressRange) PFN_cuMemGetHandleForAddressRange_v11070;
typedef decltype(&cuMulticastAddDevice) PFN_cuMulticastAddDevice_v12010;
typedef decltype(&cuMulticastBindMem) PFN_cuMulticastBindMem_v12010;
typedef decltype(&cuMulticastBindAddr) PFN_cuMulticastBindAddr_v12010;
typedef decltype(&cuMulticastCreate) PFN_cuMulticastCreate_v12010;
typedef decltype(&cuMulticastGetGranularity) PFN_cuMulticastGetGranularity_v12010;
typedef decltype(&cuMulticastUnbind) PFN_cuMulticastUnbind_v12010;
typedef decltype(&cuStreamBatchMemOp) PFN_cuStreamBatchMemOp_v11070;
typedef decltype(&cuStreamWaitValue32) PFN_cuStreamWaitValue32_v11070;
typedef decltype(&cuStreamWaitValue64) PFN_cuStreamWaitValue64_v11070;
typedef decltype(&cuStreamWriteValue32) PFN_cuStreamWriteValue32_v11070;
typedef decltype(&cuStreamWriteValue64) PFN_cuStreamWriteValue64_v11070;
typedef decltype(&cuInit) PFN_cuInit_v2000;
typedef decltype(&cuDriverGetVersion) PFN_cuDriverGetVersion_v2020;
typedef decltype(&cuGetProcAddress) PFN_cuGetProcAddress_v11030;
// Release 11.4 counts the affinities of an execution context. 0 of them make the same context.
typedef CUresult (*PFN_cuCtxCreate_v11040)(CUcontext* context, void* affinities, int count,
                                           unsigned flags, CUdevice device);

// Without a version: the newest one of this front.
typedef PFN_cuDeviceGet_v2000 PFN_cuDeviceGet;
typedef PFN_cuDeviceGetAttribute_v2000 PFN_cuDeviceGetAttribute;
typedef PFN_cuDeviceGetUuid_v9020 PFN_cuDeviceGetUuid;
typedef PFN_cuGetErrorString_v6000 PFN_cuGetErrorString;
typedef PFN_cuGetErrorName_v6000 PFN_cuGetErrorName;
typedef PFN_cuMemGetAddressRange_v3020 PFN_cuMemGetAddressRange;
typedef PFN_cuCtxDestroy_v4000 PFN_cuCtxDestroy;
typedef PFN_cuCtxGetCurrent_v4000 PFN_cuCtxGetCurrent;
typedef PFN_cuCtxSetCurrent_v4000 PFN_cuCtxSetCurrent;
typedef PFN_cuCtxGetDevice_v2000 PFN_cuCtxGetDevice;
typedef PFN_cuPointerGetAttribute_v4000 PFN_cuPointerGetAttribute;
typedef PFN_cuLaunchKernel_v4000 PFN_cuLaunchKernel;
typedef PFN_cuLaunchKernelEx_v11060 PFN_cuLaunchKernelEx;
typedef PFN_cuMemAddressReserve_v10020 PFN_cuMemAddressReserve;
typedef PFN_cuMemAddressFree_v10020 PFN_cuMemAddressFree;
typedef PFN_cuMemCreate_v10020 PFN_cuMemCreate;
typedef PFN_cuMemGetAllocationGranularity_v10020 PFN_cuMemGetAllocationGranularity;
typedef PFN_cuMemExportToShareableHandle_v10020 PFN_cuMemExportToShareableHandle;
typedef PFN_cuMemImportFromShareableHandle_v10020 PFN_cuMemImportFromShareableHandle;
typedef PFN_cuMemMap_v10020 PFN_cuMemMap;
typedef PFN_cuMemRelease_v10020 PFN_cuMemRelease;
typedef PFN_cuMemRetainAllocationHandle_v11000 PFN_cuMemRetainAllocationHandle;
typedef PFN_cuMemSetAccess_v10020 PFN_cuMemSetAccess;
typedef PFN_cuMemUnmap_v10020 PFN_cuMemUnmap;
typedef PFN_cuMemGetAllocationPropertiesFromHandle_v10020
    PFN_cuMemGetAllocationPropertiesFromHandle;
typedef PFN_cuMemGetHandleForAddressRange_v11070 PFN_cuMemGetHandleForAddressRange;
typedef PFN_cuMulticastAddDevice_v12010 PFN_cuMulticastAddDevice;
typedef PFN_cuMulticastBindMem_v12010 PFN_cuMulticastBindMem;
typedef PFN_cuMulticastBindAddr_v12010 PFN_cuMulticastBindAddr;
typedef PFN_cuMulticastCreate_v12010 PFN_cuMulticastCreate;
typedef PFN_cuMulticastGetGranularity_v12010 PFN_cuMulticastGetGranularity;
typedef PFN_cuMulticastUnbind_v12010 PFN_cuMulticastUnbind;
typedef PFN_cuStreamBatchMemOp_v11070 PFN_cuStreamBatchMemOp;
typedef PFN_cuStreamWaitValue32_v11070 PFN_cuStreamWaitValue32;
typedef PFN_cuStreamWaitValue64_v11070 PFN_cuStreamWaitValue64;
typedef PFN_cuStreamWriteValue32_v11070 PFN_cuStreamWriteValue32;
typedef PFN_cuStreamWriteValue64_v11070 PFN_cuStreamWriteValue64;
typedef PFN_cuInit_v2000 PFN_cuInit;
typedef PFN_cuDriverGetVersion_v2020 PFN_cuDriverGetVersion;
typedef PFN_cuGetProcAddress_v11030 PFN_cuGetProcAddress;
typedef PFN_cuCtxCreate_v11040 PFN_cuCtxCreate;
