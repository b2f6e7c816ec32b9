// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWrongUsage(t *testing.T) {
	const item = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\n"
	valid, nameless := writeFile(t, item+"metadata: {name: a}\nspec: {type: t}"), writeFile(t, item+"spec: {type: t}")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file":                {[]string{"--", "true"}, "--item, --installation: set exactly one of them"},
		"both files":             {[]string{"--item=a", "--installation=b", "--", "true"}, "--item, --installation: set exactly one of them"},
		"no command":             {[]string{"--item=" + valid}, "the command of the deployer is required after --"},
		"unknown command":        {[]string{"--item=" + valid, "--", "./missing"}, "command: "},
		"missing file":           {[]string{"--item=missing.yaml", "--", "true"}, "--item: "},
		"no name":                {[]string{"--item=" + nameless, "--", "true"}, "--item: metadata.name: required"},
		"file without a Target":  {[]string{"--item=" + valid, "--target=" + valid, "--", "true"}, "--target: "},
		"missing Installation":   {[]string{"--installation=missing.yaml", "--", "true"}, "--installation: "},
		"file without an object": {[]string{"--installation=" + writeFile(t, "a: b"), "--", "true"}, "--installation: an object has no kind or no name"},
		"empty input":            {[]string{"--item=-", "--", "true"}, "--item: -: is empty"},
		"unknown flag":           {[]string{"--fancy"}, "unknown flag: --fancy"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := NewCommand()
			cmd.SilenceErrors = true
			cmd.SetArgs(test.args)
			cmd.SetIn(strings.NewReader(""))
			err := cmd.ExecuteContext(t.Context())
			if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error of usage with %q", err, test.want)
			}
		})
	}
}

func TestReadFiles(t *testing.T) {
	o := &options{
		target:       writeFile(t, "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Target\nmetadata: {name: c}\nspec: {type: k, config: {kubeconfig: \"{kubeconfig}\", other: 1}}"),
		installation: writeFile(t, "# licence\n---\nkind: DataObject\nmetadata: {name: a, namespace: demo}\n---\nkind: Installation\nmetadata: {name: b}\n"),
	}
	f, err := readFiles(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"default": true, "demo": true}, f.listNamespaces()); diff != "" {
		t.Errorf("namespaces (-want, +got):\n%s", diff)
	}
	if len(f.objects) != 2 || f.objects[0].GetName() != "a" || f.objects[1].GetName() != "b" {
		t.Errorf("objects %v, want a and b", f.objects)
	}
	if err := f.fillTarget([]byte("x: \"y\"")); err != nil {
		t.Fatal(err)
	}
	if got, want := string(f.target.Spec.Configuration.RawMessage), `{"kubeconfig":"x: \"y\"","other":1}`; got != want {
		t.Errorf("the Target has %s, want %s", got, want)
	}
}

func TestPrintedCommandsAreComplete(t *testing.T) {
	t.Run("the printed commands are complete [F88]", func(t *testing.T) {
		target := "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Target\nmetadata: {name: c, namespace: demo}\nspec: {type: k}"
		item := "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\nmetadata: {name: a, namespace: demo}\nspec: {type: t}"
		for name, test := range map[string]struct {
			options options
			want    []string
		}{
			"item": {options{item: writeFile(t, item), target: writeFile(t, target)}, []string{"x explain demo/a", "x tree demo/a --allow-private-hosts"}},
			"Installation": {
				options{installation: writeFile(t, "kind: Installation\nmetadata: {name: b, namespace: demo}\n"), target: writeFile(t, target)},
				[]string{"x tree --namespace=demo --allow-private-hosts"},
			},
		} {
			f, err := readFiles(&test.options, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(test.want, f.getCommands("x")); diff != "" {
				t.Errorf("%s: commands (-want, +got):\n%s", name, diff)
			}
		}
	})
}

func TestPrintItems(t *testing.T) {
	item := func(job, finished string, phase lsv1alpha1.DeployItemPhase) lsv1alpha1.DeployItem {
		return lsv1alpha1.DeployItem{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "a"},
			Status:     lsv1alpha1.DeployItemStatus{JobID: job, JobIDFinished: finished, Phase: phase},
		}
	}
	failed := item("2", "2", lsv1alpha1.DeployItemPhases.Failed)
	failed.Status.LastError = &lsv1alpha1.Error{Message: "no\nspace"}
	var out bytes.Buffer
	shown := map[client.ObjectKey]string{}
	for _, step := range []struct {
		items    []lsv1alpha1.DeployItem
		finished bool
		failed   bool
	}{
		{nil, false, false},
		{[]lsv1alpha1.DeployItem{item("", "", "")}, false, false},
		{[]lsv1alpha1.DeployItem{item("1", "", lsv1alpha1.DeployItemPhases.Progressing)}, false, false},
		{[]lsv1alpha1.DeployItem{item("1", "", lsv1alpha1.DeployItemPhases.Progressing)}, false, false},
		{[]lsv1alpha1.DeployItem{item("1", "1", lsv1alpha1.DeployItemPhases.Succeeded)}, true, false},
		{[]lsv1alpha1.DeployItem{item("2", "1", lsv1alpha1.DeployItemPhases.Succeeded)}, false, false},
		{[]lsv1alpha1.DeployItem{failed}, true, true},
	} {
		finished, err := printItems(&out, step.items, shown)
		if finished != step.finished || (err != nil) != step.failed {
			t.Errorf("show(%v): got %t, %v, want %t and an error: %t", step.items, finished, err, step.finished, step.failed)
		}
	}
	if diff := cmp.Diff("demo/a  Progressing\ndemo/a  Succeeded\ndemo/a  Failed: no; space\n", out.String()); diff != "" {
		t.Errorf("output (-want, +got):\n%s", diff)
	}
}

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
