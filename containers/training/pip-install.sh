#!/bin/sh
# pip install "$@" with the host's CA bundle where it handed one over, and leave the
# environment so that a job of any uid can install its requirements.txt into it.
set -eu
bundle=/opt/windtunnel/build-inputs/ca-bundle.crt
if [ -s "$bundle" ]; then
    export PIP_CERT="$bundle" SSL_CERT_FILE="$bundle" REQUESTS_CA_BUNDLE="$bundle"
fi
/opt/venv/bin/pip install "$@"
# Directories only: a changed file would be stored a second time in the new layer.
find /opt/venv -type d ! -perm -0002 -exec chmod a+rwx {} +
