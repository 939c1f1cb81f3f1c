// Replaces torch's own header of this name, as on the device: tensors and factories, without neural networks.
// It compiles several times faster.
#pragma once
#include <torch/types.h>
