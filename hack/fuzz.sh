#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz test for the given time. go test can run only one fuzz test, so the script runs two processes at a time.
# It also runs TestRandomSequences of package patch, with a fixed number of random sequences of each kind, and the simulations of
# package simulation, with SIMULATION_SEEDS seeds each (10 000). Each test has its own log. At the end, the script prints how often each test was executed.
# Usage: fuzz.sh [time] [regexp of "./package Name"]
set -euo pipefail
cd "$(dirname "$0")/.."
export FUZZTIME=${1:-30s} LOGS
select=${2:-.}
LOGS=$(mktemp -d)
trap 'rm -rf "$LOGS"' EXIT

# Minimizing a new input that causes no failure may take a minute, so the number of executions for it is limited.
fuzz() {
	local log="$LOGS/log${1//\//_}_$2" # $1 begins with a dot, which would hide it
	local args=(-run='^$' -fuzz="^$2\$" -fuzztime="$FUZZTIME" -fuzzminimizetime=100x -parallel="${FUZZWORKERS:-1}")
	if [[ $2 == Test* ]]; then # ends after a number of executions
		args=(-run="^$2\$" -count=1 -timeout=3h -v)
		export DEPLOYERKIT_SEQUENCES=${DEPLOYERKIT_SEQUENCES:-100000} SIMULATION_SEEDS=${SIMULATION_SEEDS:-10000}
	fi
	if go test "${args[@]}" "$1" >"$log" 2>&1 </dev/null; then
		printf '%-28s %-34s %9d executions\n' "$2" "$1" "$(executions "$log")"
	else
		cat "$log"
		echo "FAILED: $2 in $1"
		return 1
	fi
}
# A fuzz test prints a running total, so its last number counts. TestRandomSequences prints a number for each kind of
# sequence, and a simulation prints the number of its seeds.
executions() {
	sed -nE 's/.*(execs|seeds): ([0-9]+).*/\2/p' "$1" | { [[ $1 == *_Test* ]] || tail -n 1; cat; } | awk '{ n += $1 } END { print n + 0 }'
}
export -f fuzz executions

# The tests with a fixed number of executions take longest, so they start first.
targets=$({
	echo ./landscapertest/simulation TestDeployerlib
	echo ./landscapertest/simulation TestManaged
	echo ./patch TestRandomSequences
	grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^(.*)/[^/]+:func (.*)#\1 \2#' | sort
} | grep -E "$select")
failed=0
xargs -P "${FUZZJOBS:-2}" -L 1 bash -c 'fuzz "$0" "$1"' <<<"$targets" || failed=1

total=0
for log in "$LOGS"/*; do total=$((total + $(executions "$log"))); done
echo "$(wc -l <<<"$targets") tests, $total executions, $FUZZTIME for each fuzz test"
exit "$failed"
