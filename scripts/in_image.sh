#!/usr/bin/env bash
# Run a command in an image with the checkout at /src, read-only, as the calling user.
#
# usage: scripts/in_image.sh IMAGE COMMAND...
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -ge 2 ] || fail "usage: scripts/in_image.sh IMAGE COMMAND..."
image="$1"
shift
exec docker run --rm --init --network none --hostname algo-1 --add-host algo-1:127.0.0.1 --shm-size 2g \
    --user "$(id -u):$(id -g)" --volume "$ROOT:/src:ro" --workdir /src \
    --env USER=job --env LOGNAME=job --env HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis \
    "$image" "$@"
