# At the image's build: what AWS's scripts find on a Trainium node of ParallelCluster.
set -eu
software=/opt/windtunnel/cluster/software
umask 0
pip install --compile --no-index --no-deps --no-build-isolation "$software"
mkdir -p /opt/aws/neuron/bin
for tool in neuron-ls neuron-monitor neuron-top; do
    ln -s "/opt/venv/bin/$tool" "/opt/aws/neuron/bin/$tool"
done
# sudo and root's PATH look here before /usr/sbin.
ln -s /opt/venv/bin/windtunnel-sysctl /usr/local/sbin/sysctl
