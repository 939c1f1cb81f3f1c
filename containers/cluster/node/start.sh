#!/bin/bash
# First process of a node. Usage: start.sh head | compute
#
# CLUSTER_USER, CLUSTER_UID, CLUSTER_GID  the cluster's user
# WINDTUNNEL_CLUSTER_REGION, WINDTUNNEL_INSTANCE_TYPE  for the node's metadata service
# Mounted: /opt/windtunnel/keys (keys of munge and ssh), /etc/slurm, /home, /opt/windtunnel/jobs, file systems;
# on the head node also /var/spool/slurmctld and /opt/windtunnel/orders.
set -eu
NODE=/opt/windtunnel/cluster/node
KEYS=/opt/windtunnel/keys

# No process of a node may change its network: the step that needs the capability comes first, then it is dropped.
if [ "${1:-}" != --without-rights ]; then
    python3 -IS "$NODE/local_addresses.py" 169.254.169.254 169.254.170.2
    exec setpriv --bounding-set -net_admin,-setpcap --inh-caps -net_admin,-setpcap "$0" --without-rights "$@"
fi
ROLE="$2"

add_user() {
    getent group "$CLUSTER_GID" >/dev/null || groupadd -g "$CLUSTER_GID" "$CLUSTER_USER"
    id "$CLUSTER_USER" >/dev/null 2>&1 ||
        useradd -o -u "$CLUSTER_UID" -g "$CLUSTER_GID" -M -d "/home/$CLUSTER_USER" -s /bin/bash "$CLUSTER_USER"
    echo "$CLUSTER_USER ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/cluster
    chmod 440 /etc/sudoers.d/cluster
}

as_user() {
    setpriv --reuid "$CLUSTER_USER" --regid "$CLUSTER_GID" --init-groups "$@"
}

# Write the variables that every session and every task of a job gets (PAM and task-prolog.sh read the file).
write_environment() {
    env | grep -E '^(WINDTUNNEL_|AWS_|SSL_CERT_FILE=|REQUESTS_CA_BUNDLE=|PIP_|LANG=|PYTHONUNBUFFERED=|[a-zA-Z]+_(proxy|PROXY)=)' \
        >/etc/environment || true
}

# make_home: make the cluster's keys, and the environment that AWS's scripts expect. Only the head node does so.
make_home() {
    local home="/home/$CLUSTER_USER"
    if [ ! -e "$KEYS/ssh_host_ed25519_key" ]; then
        rm -f "$KEYS"/.host*
        ssh-keygen -q -t ed25519 -N '' -C cluster -f "$KEYS/.host"
        mv "$KEYS/.host.pub" "$KEYS/ssh_host_ed25519_key.pub"
        mv "$KEYS/.host" "$KEYS/ssh_host_ed25519_key"
        chown "$CLUSTER_UID:$CLUSTER_GID" "$KEYS"/ssh_host_*
    fi
    if [ ! -e "$home/.ssh/authorized_keys" ]; then
        mkdir -p -m 700 "$home/.ssh"
        rm -f "$home"/.ssh/id_ed25519*
        ssh-keygen -q -t ed25519 -N '' -C "$CLUSTER_USER" -f "$home/.ssh/id_ed25519"
        cp -rn --no-preserve=ownership /etc/skel/. "$home"
        chown -R --no-dereference "$CLUSTER_UID:$CLUSTER_GID" "$home"
        install -m 600 -o "$CLUSTER_UID" -g "$CLUSTER_GID" "$home/.ssh/id_ed25519.pub" "$home/.ssh/authorized_keys"
    fi
    # The virtual environment that AWS's scripts activate, on all nodes.
    as_user windtunnel-neuron-venv "$home/aws_neuron_venv_pytorch"
}

take_keys() {
    install -m 600 "$KEYS/ssh_host_ed25519_key" /etc/ssh/ssh_host_ed25519_key
    printf '* %s\n' "$(cat "$KEYS/ssh_host_ed25519_key.pub")" >/etc/ssh/ssh_known_hosts
    install -m 400 -o munge -g munge "$KEYS/munge.key" /etc/munge/munge.key
}

# keep COMMAND...: run a command in the background, and start it again whenever it ends.
keep() {
    while :; do
        "$@" || true
        sleep 0.5
    done &
}

munge_runs() {
    install -d -m 755 -o munge -g munge /run/munge
    rm -f /run/munge/*
    keep setpriv --reuid munge --regid munge --init-groups munged --foreground --force --num-threads 2
    until [ -S /run/munge/munge.socket.2 ]; do sleep 0.05; done
}

# End slurmctld first and wait until it has saved its state; then end the loops that keep the other daemons running.
leave() {
    trap - TERM INT
    pkill -TERM -x slurmctld
    while pgrep -x slurmctld >/dev/null; do sleep 0.05; done
    kill -TERM -- -$$
    exit 0
}

trap leave TERM INT
add_user
write_environment
[ "$ROLE" != head ] || make_home
take_keys
munge_runs
keep /usr/sbin/sshd -D -e
keep /opt/venv/bin/windtunnel-metadata --instance-type "$WINDTUNNEL_INSTANCE_TYPE" \
    --availability-zone "${WINDTUNNEL_CLUSTER_REGION}a"
case "$ROLE" in
head)
    "$NODE/name-absent-nodes.sh"
    keep as_user slurmctld -D
    ;;
# -b (report the node as rebooted): else Slurm would wait for a reboot, because the host is up longer than the node.
compute) keep slurmd -D -b -N "$(hostname)" ;;
esac
wait
