#!/bin/bash
# as-user.sh COMMAND...: on a node, as the cluster's user, without the rights that only the node's first process has
# (an engine gives them to whatever it starts in the node).
exec setpriv --bounding-set -net_admin,-setpcap --inh-caps -net_admin,-setpcap \
    --reuid "$CLUSTER_USER" --regid "$CLUSTER_GID" --init-groups env "HOME=/home/$CLUSTER_USER" "$@"
