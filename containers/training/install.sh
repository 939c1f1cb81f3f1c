#!/bin/sh
# uv pip install "$@", with the package indexes and the CA bundle of the host. Everyone may write to the directories,
# because a job with any uid installs its requirements.txt into this environment.
set -eu
umask 0
inputs=/opt/windtunnel/build-inputs
if [ -s $inputs/ca-bundle.crt ]; then export PIP_CERT=$inputs/ca-bundle.crt; fi
# shellcheck source=containers/training/uv-env.sh
. /opt/windtunnel/uv-env.sh
export UV_FIND_LINKS="$inputs${UV_FIND_LINKS:+,$UV_FIND_LINKS}"
/opt/venv/bin/pip install --quiet --target /tmp/uv "uv>=0.10"
/tmp/uv/bin/uv pip install --python /opt/venv/bin/python --no-cache "$@"
rm -r /tmp/uv
