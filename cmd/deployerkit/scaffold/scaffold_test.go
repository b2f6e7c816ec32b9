// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	// The packages that new repositories use: Go's test cache notices their changes only if this test imports them.
	_ "github.com/deployerkit/deployerkit/conformance"
	_ "github.com/deployerkit/deployerkit/declarative/declarativetest"
	_ "github.com/deployerkit/deployerkit/deployermain"
	_ "github.com/deployerkit/deployerkit/landscapertest"
	_ "github.com/deployerkit/deployerkit/stategraph"
)

func TestWrongUsage(t *testing.T) {
	valid := []string{"example.org/password", "--module=example.org/password-deployer"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no type":                          {[]string{"--module=example.org/a"}, "the type of the deploy items, such as example.org/password"},
		"two types":                        {append(valid, "example.org/b"), "received 2"},
		"no slash":                         {[]string{"password", "--module=example.org/a"}, `type "password": want a domain, a slash and a name`},
		"empty name":                       {[]string{"example.org/", "--module=example.org/a"}, `"" is not a name`},
		"two slashes":                      {[]string{"example.org/a/b", "--module=example.org/a"}, `"a/b" is not a name`},
		"capitals":                         {[]string{"Example.org/a", "--module=example.org/a"}, `"Example.org" is not a domain`},
		"quotes":                           {[]string{`example.org/a"b`, "--module=example.org/a"}, "is not a name"},
		"long name":                        {[]string{"example.org/" + strings.Repeat("a", 41), "--module=example.org/a"}, "has 41 characters"},
		"no module":                        {valid[:1], "--module: required"},
		"invalid module":                   {[]string{valid[0], "--module=a b"}, `--module: malformed import path "a b"`},
		"module with quotes":               {[]string{valid[0], `--module=a"b`}, "--module: malformed import path"},
		"absolute module":                  {[]string{valid[0], "--module=/a"}, "--module: malformed import path"},
		"DeployerKit":                      {[]string{valid[0], "--module=" + deployerKit + "/x"}, "is the path of DeployerKit itself"},
		"unknown style":                    {append(valid, "--style=fancy"), `--style "fancy": want plain, declarative or graph`},
		"unknown licence":                  {append(valid, "--license=wtfpl"), `--license "wtfpl": want apache-2.0, mit or none`},
		"owner of two lines":               {append(valid, "--owner=a\nb"), "contains control characters"},
		"unknown flag":                     {append(valid, "--fancy"), "unknown flag: --fancy"},
		"directory that is not a checkout": {append(valid, "--deployerkit=."), "is not a checkout of DeployerKit"},
		"conflicting file":                 {valid, "already contains README.md"},
		"directory is a file":              {append(valid, "--dir=README.md"), "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			if err := os.WriteFile("README.md", []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := execute(t, test.args...)
			if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want an error of usage in one line with %q", err, test.want)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("something was written: %v, %v", entries, err)
			}
			if content, err := os.ReadFile("README.md"); err != nil || string(content) != "mine" {
				t.Errorf("README.md is %q, %v", content, err)
			}
		})
	}
}

func execute(t *testing.T, args ...string) error {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceErrors = true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

func TestWriteKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b")
	if err := create(path, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := create(path, "other"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create(...) of an existing file: got %v, want %v", err, fs.ErrExist)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	err := write(dir, map[string]string{"a/b": "other", "link": "other", "new": "other"})
	if !errors.Is(err, ErrUsage) || !strings.HasSuffix(err.Error(), "already contains a/b, link") {
		t.Errorf("write(...) over existing files: got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("write(...) over existing files wrote another one: %v", err)
	}
}

func TestRender(t *testing.T) {
	for _, style := range styles {
		for license := range licenses {
			t.Run(style+" "+license, func(t *testing.T) {
				p := &project{
					Type: "example.org/my-password", Module: "example.org/password-deployer", Style: style, License: license, Year: 2026,
					source: source{Version: "v1.2.3"},
				}
				if err := p.complete(); err != nil {
					t.Fatal(err)
				}
				files, err := p.render()
				if err != nil {
					t.Fatal(err)
				}
				checkFiles(t, files)
				if _, exists := files["LICENSE"]; exists == (license == "none") {
					t.Errorf("there is a licence: %t", exists)
				}
				if strings.Contains(files["go.mod"], "replace") {
					t.Errorf("a release is replaced:\n%s", files["go.mod"])
				}
				if !strings.Contains(files["examples/deployitem.yaml"], "kind: MyPassword\n") {
					t.Errorf("the configuration has another kind:\n%s", files["examples/deployitem.yaml"])
				}
			})
		}
	}
}

func TestNewChart(t *testing.T) {
	for _, style := range styles {
		t.Run("the chart of a new deployer has no values for compatibility with Landscaper's charts: "+style+" [F90]", func(t *testing.T) {
			p := &project{Type: "example.org/my-password", Module: "example.org/password-deployer", Style: style, License: "none", Year: 2026}
			if err := p.complete(); err != nil {
				t.Fatal(err)
			}
			files, err := p.render()
			if err != nil {
				t.Fatal(err)
			}
			values := struct{ Deployer, ServiceAccount map[string]any }{}
			all := map[string]any{}
			if err := yaml.Unmarshal([]byte(files["chart/values.yaml"]), &values); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(files["chart/values.yaml"]), &all); err != nil {
				t.Fatal(err)
			}
			for name, group := range map[string]map[string]any{"namespace": values.Deployer, "tmpSuffix": values.ServiceAccount, "identity": all, "useOCMLib": all} {
				if _, exists := group[name]; exists || len(group) == 0 {
					t.Errorf("the value %s exists, or its group is empty: %v", name, group)
				}
			}
			for path, content := range files {
				if strings.HasPrefix(path, "chart/") && (strings.Contains(content, "tmpSuffix") || strings.Contains(content, "useOCMLib")) {
					t.Errorf("%s mentions a value for compatibility", path)
				}
			}
		})
	}
}

// TestNewRepositoryCompiles compiles the programs and tests of the templates with the library as it is here. A
// repository has the same dependencies as the library, so it uses its go.sum.
func TestNewRepositoryCompiles(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for _, style := range styles {
		t.Run(style, func(t *testing.T) {
			t.Parallel()
			p := &project{
				Type: "example.org/my-password", Module: "example.org/password-deployer", Style: style, License: "none", Year: 2026,
				source: source{Version: "v0.0.0", Replace: root},
			}
			if err := p.complete(); err != nil {
				t.Fatal(err)
			}
			files, err := p.render()
			if err != nil {
				t.Fatal(err)
			}
			files["go.sum"] = string(sums)
			dir := filepath.Join(t.TempDir(), "repository")
			if err := write(dir, files); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go vet: %v\n%s", err, output)
			}
		})
	}
}

// checkFiles requires that Go files are formatted, that manifests are YAML, and that no template delimiters are left.
func checkFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		if strings.Contains(content, "[[") || strings.Contains(content, "]]") {
			t.Errorf("%s has a rest of a template", path)
		}
		if strings.HasPrefix(path, "chart/templates/") {
			continue
		}
		switch filepath.Ext(path) {
		case ".go":
			formatted, err := format.Source([]byte(content))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if diff := cmp.Diff(string(formatted), content); diff != "" {
				t.Errorf("%s is not formatted (-want, +got):\n%s", path, diff)
			}
		case ".yaml":
			for document := range strings.SplitSeq(content, "\n---\n") {
				if err := yaml.UnmarshalStrict([]byte(document), &map[string]any{}); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
}

func TestGetRelease(t *testing.T) {
	self := debug.Module{Path: deployerKit, Version: "v1.2.3", Sum: "h1:x"}
	local := debug.Module{Path: deployerKit, Version: "(devel)"}
	replaced := self
	replaced.Replace = &debug.Module{Path: "../deployerkit"}
	for name, test := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"unknown":        {nil, ""},
		"installed":      {&debug.BuildInfo{Main: self}, "v1.2.3"},
		"tool":           {&debug.BuildInfo{Main: debug.Module{Path: "example.org/a"}, Deps: []*debug.Module{&self}}, "v1.2.3"},
		"development":    {&debug.BuildInfo{Main: local}, ""},
		"replaced tool":  {&debug.BuildInfo{Main: debug.Module{Path: "example.org/a"}, Deps: []*debug.Module{&replaced}}, ""},
		"another module": {&debug.BuildInfo{Main: debug.Module{Path: "example.org/a", Version: "v9.9.9", Sum: "h1:x"}}, ""},
	} {
		if got := getRelease(test.info); got != test.want {
			t.Errorf("%s: releaseOf(...) is %q, want %q", name, got, test.want)
		}
	}
}
