# Runs at the image's build: sets up what all nodes of all clusters have in common.
set -eu
node=/opt/windtunnel/cluster/node
chmod 755 "$node"/*.sh "$node"/*.py "$node"/sacct
mkdir -p /run/sshd /run/munge /var/spool/slurmd /etc/slurm
# All nodes of a cluster have the same host key.
cat >/etc/ssh/sshd_config.d/cluster.conf <<'CONF'
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
UseDNS no
CONF
ln -s "$node/sacct" /usr/local/bin/sacct
ln -s power.py "$node/resume"
ln -s power.py "$node/suspend"
