#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz test for the given time, two at once: go test takes only one of them at a time. The random sequences of package
# patch run beside them, a fixed number of each kind. Each has a log; the end shows how often each was executed.
# Usage: fuzz.sh [time] [regexp of "./package Name"]
set -euo pipefail
cd "$(dirname "$0")/.."
export FUZZTIME=${1:-30s} LOGS
select=${2:-.}
LOGS=$(mktemp -d)
trap 'rm -rf "$LOGS"' EXIT

# Minimizing an input that is only new, not bad, may take a minute of the time: it gets a few executions.
fuzz() {
	local log="$LOGS/log${1//\//_}_$2" # $1 begins with a dot, which would hide it
	local args=(-run='^$' -fuzz="^$2\$" -fuzztime="$FUZZTIME" -fuzzminimizetime=100x -parallel="${FUZZWORKERS:-1}")
	if [[ $2 == Test* ]]; then # ends after a number of executions
		args=(-run="^$2\$" -count=1 -timeout=30m -v)
		export DEPLOYERKIT_SEQUENCES=${DEPLOYERKIT_SEQUENCES:-100000}
	fi
	if go test "${args[@]}" "$1" >"$log" 2>&1 </dev/null; then
		printf '%-28s %-34s %9d executions\n' "$2" "$1" "$(executions "$log")"
	else
		cat "$log"
		echo "FAILED: $2 in $1"
		return 1
	fi
}
# The last number of a fuzz test is the sum so far. Each kind of sequences has one number.
executions() {
	sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$1" | { [[ $1 == *_Test* ]] || tail -n 1; cat; } | awk '{ n += $1 } END { print n + 0 }'
}
export -f fuzz executions

# The sequences take longest, so they begin.
targets=$({
	echo ./patch TestSequences
	grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^(.*)/[^/]+:func (.*)#\1 \2#' | sort
} | grep -E "$select")
failed=0
xargs -P "${FUZZJOBS:-2}" -L 1 bash -c 'fuzz "$0" "$1"' <<<"$targets" || failed=1

total=0
for log in "$LOGS"/*; do total=$((total + $(executions "$log"))); done
echo "$(wc -l <<<"$targets") tests, $total executions, $FUZZTIME for each fuzz test"
exit "$failed"
