#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Copies the JavaScript libraries of the web page, of the site, and of their tests from npm into the repository, with their
# licences.
# Building and testing need no npm: run this script only to change a version.
set -euo pipefail
cd "$(dirname "$0")/.."

dagre=3.1.3 axe=4.14.1 mermaid=11.17.2
page=$PWD/internal/ui/static/vendor tests=$PWD/test/ui/testdata site=$PWD/docs/site/static/vendor
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# unpack downloads a version of a package into a directory.
unpack() {
	mkdir "$2"
	npm pack --silent "$1" >/dev/null
	tar -xzf ./*.tgz -C "$2" --strip-components=1
	rm ./*.tgz
}

unpack "@dagrejs/dagre@$dagre" dagre
grep -v '^//# sourceMappingURL=' dagre/dist/dagre.esm.js >"$page/dagre.js"
cp dagre/LICENSE "$page/dagre.LICENSE"
unpack "axe-core@$axe" axe
cp axe/axe.min.js "$tests/axe.min.js"
cp axe/LICENSE "$tests/axe.LICENSE"
unpack "@mermaid-js/tiny@$mermaid" mermaid
cp mermaid/dist/mermaid.tiny.js "$site/mermaid.js"
cp mermaid/LICENSE "$site/mermaid.LICENSE"
