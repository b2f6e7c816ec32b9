#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the command deployerkit, shows the progress of the build, and runs the command: hack/run.sh demo
set -euo pipefail
cd "$(dirname "$0")/.."

echo "deployerkit: building the command: 10 seconds with a warm build cache, about 3 minutes on 2 cores without one"
total=$(go list -deps ./cmd/deployerkit | wc -l)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go build -v -o bin/deployerkit ./cmd/deployerkit 2>"$log" &
build=$!
for ((looks = 1; ; looks++)); do
	kill -0 "$build" 2>/dev/null || break
	sleep 0.5
	((looks % 10)) || echo "deployerkit: $(grep -c '^[^ :]*$' "$log" || true) of at most $total packages, $SECONDS s"
done
wait "$build" || { cat "$log" >&2 && exit 1; }
rm -f "$log"
exec bin/deployerkit "$@"
