// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// code is a package in which only the last comments contain names that are not declared.
const code = `// Package a calls newClient, Client.Get, b.Server.Stop, b.Alias.Any, server.Anything and other.Thing.
package a

// A Client has the fields of Options. NewClients are TypeMetas, see [Client], [L15], "noName" and path/toFile.
type Client struct{ b.Options }

// Get calls the function ` + "`call`" + ` of a Limit.
func (c *Client) Get(call func()) { var TypeMeta = "providerStatus" }

type Limit struct{ Size int }

// newClient returns a Client with a providerStatus for an EndpointSlice.
//
//	c := oldClient(b.Missing)
func newClient(server string) *Client { return NewClient() }

// makeClient is now newClient. So is [Clientele] and ` + "`callback`" + `.
// Limit.Count is now Limit.Size, b.Service is now b.Server, and b.Server.Halt is now b.Server.Stop.
`

const server = `package b

// A Server was a listenerSet.
type Server struct{}

func (Server) Stop() {}

type Alias = other.Type
`

func TestRun(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go": code, "b/b.go": server, "gone.go": "package gone\n", "values.yaml": "endpointSlices: EndpointSlice\n", "notes.md": "listenerSet\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		git := exec.Command("git", args...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	if err := os.Remove(filepath.Join(root, "gone.go")); err != nil {
		t.Fatal(err)
	}
	const undeclaredInA = `a/a.go:17: makeClient
a/a.go:17: Clientele
a/a.go:17: callback
a/a.go:18: Limit.Count
a/a.go:18: b.Service
a/a.go:18: b.Server.Halt
`
	check(t, root, "# listenerSet\n", undeclaredInA+"b/b.go:3: listenerSet\n")
	check(t, root, "listenerSet # a word\n", undeclaredInA)
	if err := os.Remove(filepath.Join(root, "a", "a.go")); err != nil {
		t.Fatal(err)
	}
	check(t, root, "listenerSet\n", "")
}

// check runs the command and compares its output. The command must fail if it prints something.
func check(t *testing.T, root, allowed, want string) {
	t.Helper()
	var out bytes.Buffer
	err := run(&out, root, allowed)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if failed := err != nil; failed != (want != "") {
		t.Errorf("run: got the error %v", err)
	}
}
