#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs Debian's package chromium, if the program chromium is missing.
set -euo pipefail

command -v chromium >/dev/null && exit
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >"$log" 2>&1 || {
	echo "cannot install chromium: $(tail -n 1 "$log")" >&2
	exit 1
}
