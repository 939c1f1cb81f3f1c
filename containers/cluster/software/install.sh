# At the image's build: what AWS's scripts find on a Trainium node of ParallelCluster.
set -eu
software=/opt/windtunnel/cluster/software
umask 0
pip install --compile --no-index --no-deps --no-build-isolation "$software"
# sudo and root's PATH look here before /usr/sbin.
ln -s /opt/venv/bin/windtunnel-sysctl /usr/local/sbin/sysctl
