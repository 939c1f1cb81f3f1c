# At the image's build: what all nodes of all clusters have in common.
set -eu
node=/opt/windtunnel/cluster/node
chmod 755 "$node"/*.sh "$node"/*.py "$node"/sacct
mkdir -p /run/sshd /run/munge /var/spool/slurmd /etc/slurm
# A node is found by its name, which the cluster gave it: all have the one host key.
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
