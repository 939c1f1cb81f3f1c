# Runs at the image's build: installs what AWS's scripts expect on a Trainium node of ParallelCluster.
set -eu
software=/opt/windtunnel/cluster/software
umask 0
pip install --compile --no-index --no-deps --no-build-isolation "$software"
# The PATH of sudo and of root has this folder before /usr/sbin.
ln -s /opt/venv/bin/windtunnel-sysctl /usr/local/sbin/sysctl
