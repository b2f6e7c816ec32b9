#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails if a generated file is out of date, or if a file does not meet the rules for all files.
set -euo pipefail
cd "$(dirname "$0")/.."

# The state before and after is compared, so the script also works if the work tree has uncommitted changes.
state() { git status --porcelain && git diff | git hash-object --stdin; }

fail() { echo "verify: $1" >&2 && exit 1; }

before=$(state)
go generate ./...
go -C test/envtest/charts generate ./...
[[ $(state) == "$before" ]] || { git status --short >&2 && fail "generated files were stale: commit what 'make generate' wrote"; }

# The other modules depend on the main module and must be tidy, too.
modules=(. hack test/envtest/bench/peers test/envtest/charts test/ui test/monitoring docs/site deployers/helm)
for module in "${modules[@]}"; do
	go -C "$module" mod tidy -diff >/dev/null || fail "go.mod or go.sum of $module is not tidy: run 'go mod tidy' there"
done

unformatted=$(gofmt -l .)
[[ -z $unformatted ]] || fail "not formatted, run 'make lint-fix': $unformatted"

headless=$(find . -name '*.go' -not -path './.git/*' -exec awk 'FNR==1 && $0 != "// SPDX-License-Identifier: Apache-2.0" {print FILENAME}' {} +)
[[ -z $headless ]] || fail "first line must be '// SPDX-License-Identifier: Apache-2.0': $headless"

go -C hack run ./phrases || fail "reword the phrases above"
go -C hack run ./commentnames || fail "correct the names above"

for module in "${modules[@]}"; do go -C "$module" vet ./...; done
