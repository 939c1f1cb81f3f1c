"""Things that AWS's public scripts expect on a Trainium node of ParallelCluster, and that a training image lacks.

metadata_service     the instance metadata service at 169.254.169.254
sysctl               `sudo sysctl -w`, where /proc/sys cannot be written
virtual_environment  ~/aws_neuron_venv_pytorch, which sees the image's packages and which the user can install into
pip_command          its pip, which uses the image's versions where no package index answers
small_data           small data sets and models for rehearsals
"""
