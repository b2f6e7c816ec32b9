// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCommandLine(t *testing.T) {
	for line, want := range map[string]commandLine{
		"run":                           {"run"},
		"  run\t-a  b\n":                {"run", "-a", "b"},
		`run --a='b c' "d e"f ''`:       {"run", "--a=b c", "d ef", ""},
		`run a\ b "c\"d" 'e\f' \\`:      {"run", "a b", `c"d`, `e\f`, `\`},
		`run "it's" 'say "no"'`:         {"run", "it's", `say "no"`},
		"run --kubeconfig={kubeconfig}": {"run", "--kubeconfig={kubeconfig}"},
		"run $HOME | *":                 {"run", "$HOME", "|", "*"},
	} {
		got, err := parseCommandLine(line)
		if err != nil {
			t.Errorf("parse(%q): %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("parse(%q): -want, +got:\n%s", line, diff)
		}
	}
	for _, line := range []string{"", "  ", "run 'a", `run "a`, `run a\`} {
		if got, err := parseCommandLine(line); err == nil {
			t.Errorf("parse(%q): want an error, got %q", line, got)
		}
	}
}

func TestReplaceIn(t *testing.T) {
	line := commandLine{"look", "{namespace}/{name}", "{kubeconfig}", "{other}"}
	got := line.replaceIn(placeholders{namespaceHere: "ns", nameHere: "{kubeconfig}", kubeconfigHere: "/a b"})
	if diff := cmp.Diff([]string{"look", "ns/{kubeconfig}", "/a b", "{other}"}, got); diff != "" {
		t.Errorf("words(...): -want, +got:\n%s", diff)
	}
}

func TestReplaceInJSON(t *testing.T) {
	raw := `{"{name}":"{name}","list":["a {note} b",12345678901234567890,true,null,{"deep":"{namespace}"}]}`
	got, err := placeholders{nameHere: "n", namespaceHere: "ns", noteHere: "x\"\n"}.replaceInJSON([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"list":["a x\"\n b",12345678901234567890,true,null,{"deep":"ns"}],"{name}":"n"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("inJSON(...): -want, +got:\n%s", diff)
	}
	if _, err := (placeholders{}).replaceInJSON([]byte("{")); err == nil {
		t.Error("inJSON(...) of no JSON: want an error")
	}
}
