"""Traced inference, as `torch_neuronx` offers it.

trace      one function with fixed shapes, lowered for the device, as a ScriptModule
parts      the lines of its forward that cut a batch into parts of the traced size
batching   a traced module for batches of any size; DataParallel over cores
placement  which core a traced module is on

On trn1 neuronx-cc compiles the HLO, and the core runs it. Here the function is lowered to HLO
on the simulated device, so that what XLA cannot lower fails as it does there, and the
ScriptModule then computes with PyTorch on the CPU: its results are those of fp32 and bf16 on a
CPU, without neuronx-cc's auto-cast. Times say nothing of an Inferentia or Trainium core.
"""
