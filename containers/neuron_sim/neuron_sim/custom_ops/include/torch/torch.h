// Stands where torch's own header of this name stands, as on the device: tensors and factories, and no neural networks.
// It compiles several times faster.
#pragma once
#include <torch/types.h>
