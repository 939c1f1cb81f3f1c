"""What AWS's public scripts find on a Trainium node of ParallelCluster, and a training image does not have.

metadata_service     the instance metadata service at 169.254.169.254
sysctl               `sudo sysctl -w`, where /proc/sys cannot be written
virtual_environment  ~/aws_neuron_venv_pytorch: sees the image's packages, is the user's to install into
pip_command          its pip: the image's versions stand in where no index answers
small_data           data sets and models of a size to rehearse with
"""
