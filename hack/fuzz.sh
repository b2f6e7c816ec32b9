#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz test for the given time, two at once: go test takes only one of them at a time. Each has a log; the end
# shows how often each was executed. Usage: fuzz.sh [time] [regexp of names]
set -euo pipefail
cd "$(dirname "$0")/.."
export FUZZTIME=${1:-30s} LOGS
select=${2:-.}
LOGS=$(mktemp -d)
trap 'rm -rf "$LOGS"' EXIT

# Minimizing an input that is only new, not bad, may take a minute of the time: it gets a few executions.
fuzz() {
	local log="$LOGS/log${1//\//_}_$2" # $1 begins with a dot, which would hide it
	if go test -run='^$' -fuzz="^$2\$" -fuzztime="$FUZZTIME" -fuzzminimizetime=100x -parallel="${FUZZWORKERS:-1}" "$1" >"$log" 2>&1 </dev/null; then
		printf '%-28s %-34s %9d executions\n' "$2" "$1" "$(executions "$log")"
	else
		cat "$log"
		echo "FAILED: $2 in $1"
		return 1
	fi
}
# The last number counts: it is the sum so far.
executions() { sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$1" | tail -n 1 | grep . || echo 0; }
export -f fuzz executions

targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^(.*)/[^/]+:func (.*)#\1 \2#' | sort | grep -E "$select")
failed=0
xargs -P "${FUZZJOBS:-2}" -L 1 bash -c 'fuzz "$0" "$1"' <<<"$targets" || failed=1

# Random sequences of patches, compared with an independent implementation.
DEPLOYERKIT_SEQUENCES=100000 go test -count=1 -timeout=60m -run='^TestSequences$' ./patch || failed=1

total=0
for log in "$LOGS"/*; do total=$((total + $(executions "$log"))); done
echo "$(wc -l <<<"$targets") fuzz tests, $total executions, $FUZZTIME each"
exit "$failed"
