#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz test for the given time: go test takes only one of them at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}

found=0
while read -r dir name; do
	found=$((found + 1))
	echo "== $name in $dir ($time)"
	go test -run='^$' -fuzz="^$name\$" -fuzztime="$time" "$dir" </dev/null
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^(.*)/[^/]+:func (.*)#\1 \2#' | sort)
echo "$found fuzz tests"
