// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// root is the path of the repository, relative to this package.
const root = "../.."

// inRepository begins the URLs of files in the repository.
const inRepository = "https://github.com/deployerkit/deployerkit/"

// build builds the site, and returns its directory.
func build(t *testing.T) string {
	t.Helper()
	hugo, err := filepath.Abs(filepath.Join(root, "hack", "hugo", "bin", "hugo"))
	must(t, err)
	if _, err := os.Stat(hugo); err != nil {
		t.Fatalf("there is no Hugo (%v); run make test-site", err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), hugo, "--destination", dir, "--noBuildLock", "--panicOnWarning", "--quiet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hugo: %v\n%s", err, out)
	}
	return dir
}

// document is what links concern in an HTML file.
type document struct {
	anchors map[string]bool
	links   []string // the values of href and src
}

// readSite reads all HTML files of a directory. The keys are paths such as /docs/targets/.
func readSite(t *testing.T, dir string) map[string]document {
	t.Helper()
	documents := map[string]document{}
	must(t, filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".html" {
			return err
		}
		text, err := os.Open(file)
		if err != nil {
			return err
		}
		defer text.Close() //nolint:errcheck // only read
		tree, err := html.Parse(text)
		if err != nil {
			return fmt.Errorf("parse %s: %w", file, err)
		}
		relative, err := filepath.Rel(dir, file)
		documents["/"+strings.TrimSuffix(filepath.ToSlash(relative), "index.html")] = readDocument(tree)
		return err
	}))
	return documents
}

func readDocument(tree *html.Node) document {
	doc := document{anchors: map[string]bool{}}
	for node := range tree.Descendants() {
		for _, attribute := range node.Attr {
			switch attribute.Key {
			case "id":
				doc.anchors[attribute.Val] = true
			case "href", "src":
				doc.links = append(doc.links, attribute.Val)
			}
		}
	}
	return doc
}

func TestAllLinksOfTheSiteLeadSomewhere(t *testing.T) {
	dir := build(t)
	documents := readSite(t, dir)
	if len(documents) < 90 {
		t.Fatalf("the site has only %d pages", len(documents))
	}
	count := 0
	for from, doc := range documents {
		for _, link := range doc.links {
			count++
			if fault := checkLink(dir, documents, from, link); fault != "" {
				t.Errorf("%s links to %s: %s", from, link, fault)
			}
		}
	}
	t.Logf("%d links in %d pages", count, len(documents))
}

// checkLink returns what is wrong with a link of a page, or nothing.
func checkLink(dir string, documents map[string]document, from, link string) string {
	dest, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if dest.IsAbs() || dest.Host != "" {
		return checkExternal(dest)
	}
	target := from
	if dest.Path != "" {
		if path.IsAbs(dest.Path) {
			return "it is not relative, so the site would not work in a directory of a server"
		}
		target = path.Join(from, dest.Path)
		if strings.HasSuffix(dest.Path, "/") || dest.Path == "." || strings.HasSuffix(dest.Path, "..") {
			target = strings.TrimSuffix(target, "/") + "/"
		}
	}
	doc, isPage := documents[target]
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(target))); err != nil || strings.HasSuffix(target, "/") && !isPage {
		return "there is no such file"
	}
	if dest.Fragment != "" && !doc.anchors[dest.Fragment] {
		return "there is no such anchor"
	}
	return ""
}

// checkExternal checks the syntax of a URL of another server. Files of the repository must exist.
func checkExternal(dest *url.URL) string {
	if dest.Scheme == "mailto" {
		return ""
	}
	if dest.Scheme != "https" || dest.Host == "" {
		return "it is not an https URL"
	}
	place, found := strings.CutPrefix(dest.String(), inRepository)
	kind, file, isFile := strings.Cut(place, "/main/")
	if !found || !isFile {
		return ""
	}
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.Split(file, "#")[0])))
	switch {
	case err != nil:
		return err.Error()
	case kind != "blob" && kind != "tree":
		return "it names neither a file nor a directory"
	case info.IsDir() != (kind == "tree"):
		return "a directory is linked as a file, or a file as a directory"
	}
	return ""
}

func TestBrokenLinksAreFound(t *testing.T) {
	documents := map[string]document{"/": {anchors: map[string]bool{"top": true}}, "/docs/a/": {anchors: map[string]bool{"here": true}}}
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "docs", "a"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "icon.svg"), nil, 0o600))
	for link, want := range map[string]bool{
		"../../": true, "../../#top": true, "#here": true, "../../icon.svg": true, "https://example.org/x": true, "mailto:a@example.org": true,
		inRepository + "blob/main/README.md": true, inRepository + "tree/main/docs": true, inRepository: true,
		"../b/": false, "../../#gone": false, "#gone": false, "/docs/a/": false, "../../gone.png": false, "http://example.org/x": false, "https:x": false,
		"//example.org/x": false, inRepository + "blob/main/gone.md": false, inRepository + "blob/main/docs": false, inRepository + "tree/main/README.md": false,
	} {
		if fault := checkLink(dir, documents, "/docs/a/", link); (fault == "") != want {
			t.Errorf("%s: got %q, want a fault: %t", link, fault, !want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
