#!/bin/bash
# as-user.sh COMMAND...: run a command on a node as the cluster's user, without the capabilities that only the node's
# first process needs (the engine gives them to every process that it starts in the node).
exec setpriv --bounding-set -net_admin,-setpcap --inh-caps -net_admin,-setpcap \
    --reuid "$CLUSTER_USER" --regid "$CLUSTER_GID" --init-groups env "HOME=/home/$CLUSTER_USER" "$@"
