"""The same training without torchrun: the script starts a process a core itself.

The cores' number comes from NEURONCORE_NUM_DEVICES.
"""

import sys

import torch_xla
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr
from mlp_torchrun import main, parser


def _mp_fn(index, arguments):
    assert index == xr.global_ordinal()
    main(arguments)


if __name__ == "__main__":
    parser.add_argument("--how", default="spawn")
    arguments = parser.parse_args(sys.argv[1:])
    if arguments.how == "launch":
        torch_xla.launch(_mp_fn, args=(arguments,))
    else:
        xmp.spawn(_mp_fn, args=(arguments,), start_method=arguments.how)
