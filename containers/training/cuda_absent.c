/* Takes the place of NVIDIA's libraries for torch's CUDA build. cpu_only.py compiles it together with a function for
   every other symbol that torch needs from them: those of libcudart call no_driver(), all others refuse(). */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define ABSENT "NVIDIA's CUDA libraries are not in this image, which is for CPUs and simulated NeuronCores: " \
               "use the device 'xla' or 'cpu', or an image of your own that has CUDA"

int no_driver(void) { return 35; } /* cudaErrorInsufficientDriver, as libcudart says it; torch.cuda.is_available() is False */
const char *cudaGetErrorString(int error) { return ABSENT; }
const char *cudaGetErrorName(int error) { return "cudaErrorInsufficientDriver"; }
int cudaDriverGetVersion(int *version) { *version = 0; return 0; }

int refuse(const char *name) {
    fprintf(stderr, "%s was called, but %s.\n", name, ABSENT);
    abort();
}

/* Versions of the libraries that this torch was built with, because programs print them. */
size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
int cudnnGetProperty(int part, int *value) {
    *value = part == 0 ? CUDNN_VERSION / 10000 : part == 1 ? CUDNN_VERSION / 100 % 100 : CUDNN_VERSION % 100;
    return 0;
}
int ncclGetVersion(int *version) { *version = NCCL_VERSION; return 0; }

/* Called when torch's own libraries are loaded and unloaded, to register their kernels. */
void **__cudaRegisterFatBinary(void *kernels) { static void *handle; return &handle; }
void __cudaRegisterFatBinaryEnd(void **handle) {}
void __cudaUnregisterFatBinary(void **handle) {}
void __cudaRegisterFunction(void) {}
void __cudaRegisterVar(void) {}
