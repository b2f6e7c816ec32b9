// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
)

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	itemHead   = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\n"
	targetHead = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Target\n"
)

// writeItem writes a file with a deploy item of type "t" and returns its path.
func writeItem(t *testing.T, config string) string {
	t.Helper()
	return writeFile(t, itemHead+"spec: {type: t, config: "+config+"}\n")
}

// parseSubject returns the conformance.Subject that the command creates from the given arguments.
func parseSubject(t *testing.T, args ...string) (conformance.Subject, error) {
	t.Helper()
	f := &flags{}
	cmd := NewCommand()
	cmd.ResetFlags()
	f.addTo(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return f.newSubject(strings.NewReader(itemHead + "spec: {type: from-stdin, config: {}}"))
}

func TestSubject(t *testing.T) {
	s, err := parseSubject(t, "--command=sh -c '{kubeconfig}'", "--item="+writeItem(t, `{a: "{namespace}/{name}"}`),
		"--invalid-item="+writeItem(t, `{b: "{note}"}`), "--slow-item="+writeItem(t, "{c: 1}"), "--finish-item="+writeItem(t, "{c: 2}"),
		"--deployed-command=test -n '{name}'", "--other-target-labels=l=other",
		"--target="+writeFile(t, targetHead+"metadata: {labels: {l: ours}}\nspec: {type: k, config: {kubeconfig: \"{kubeconfig}\"}}"),
		"--kubeconfig=file", "--revision=annotation", "--only=abort,resume", "--except=annotation/abort=a=b", "--except=resume=never", "--parallel=2")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	key := types.NamespacedName{Namespace: "ns", Name: "n"}
	raw := func(config any) string { return string(config.([]byte)) } //nolint:forcetypeassert // it would panic
	command := s.Command("/kube config")
	target, err := s.Target(&rest.Config{Host: "https://here:6443"})
	if err != nil {
		t.Fatal(err)
	}
	there, err := s.Deployed(t.Context(), nil, key)
	if err != nil || !there {
		t.Errorf("Deployed(...) of a command that ends with 0: %t, %v", there, err)
	}
	got := map[string]any{
		"name": s.Name, "type": string(s.Type), "kubeconfig": s.Kubeconfig, "revisions": s.Revisions, "only": s.Only, "parallel": s.Parallel,
		"valid": raw(s.Valid(key)), "invalid": raw(s.Invalid(key, "why")), "slow": raw(s.Slow(key)), "finish": s.Finish != nil,
		"args": command.Args, "env": command.Env[len(command.Env)-1], "exceptions": s.Exceptions,
		"labels": s.TargetLabels, "other": s.OtherTargetLabels, "here": strings.Contains(string(target.Configuration.RawMessage), `server: https://here:6443\n`),
	}
	want := map[string]any{
		"name": "t", "type": "t", "kubeconfig": "file", "revisions": []contract.Revision{contract.RevisionAnnotation}, "only": []string{"abort", "resume"},
		"parallel": 2, "valid": `{"a":"ns/n"}`, "invalid": `{"b":"why"}`, "slow": `{"c":1}`, "finish": true,
		"args": []string{"sh", "-c", "/kube config"}, "env": "KUBECONFIG=/kube config",
		"exceptions": []conformance.Exception{{Check: "abort", Revision: contract.RevisionAnnotation, Reason: "a=b"}, {Check: "resume", Reason: "never"}},
		"labels":     map[string]string{"l": "ours"}, "other": map[string]string{"l": "other"}, "here": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subject(...): -want, +got:\n%s", diff)
	}
}

func TestSubjectFromStandardInput(t *testing.T) {
	s, err := parseSubject(t, "--command=true", "--item=-", "--name=mine")
	if err != nil || s.Type != "from-stdin" || s.Name != "mine" {
		t.Errorf("subject(...): %q of type %q, %v", s.Name, s.Type, err)
	}
}

func TestCommandExitCodes(t *testing.T) {
	line := "--deployed-command=sh -c 'test \"$KUBECONFIG\" = file || exit 3; echo \"what is wrong\"; exit {name}'"
	s, err := parseSubject(t, "--command=true", "--item="+writeItem(t, "{}"), line, "--slow-item="+writeItem(t, "{}"), "--finish-command=test {name} = ok")
	if err != nil {
		t.Fatal(err)
	}
	s.Command("file")
	for name, want := range map[string]bool{"0": true, "1": false} {
		if got, err := s.Deployed(t.Context(), nil, types.NamespacedName{Name: name}); err != nil || got != want {
			t.Errorf("Deployed(...) of a command that ends with %s: %t, %v", name, got, err)
		}
	}
	if _, err := s.Deployed(t.Context(), nil, types.NamespacedName{Name: "2"}); err == nil || !strings.Contains(err.Error(), "what is wrong") {
		t.Errorf("Deployed(...) of a command that ends with 2: want an error with its output, got %v", err)
	}
	if err := s.Finish(t.Context(), nil, types.NamespacedName{Name: "ok"}); err != nil {
		t.Errorf("Finish(...): %v", err)
	}
	if err := s.Finish(t.Context(), nil, types.NamespacedName{Name: "bad"}); err == nil {
		t.Error("Finish(...) of a command that fails: want an error")
	}
}

func TestWrongUsage(t *testing.T) {
	fine := writeItem(t, "{}")
	for want, args := range map[string][]string{
		"--command and --item are required":                {"--command=true"},
		"required":                                         {"--item=" + fine},
		"unknown flag: --comand":                           {"--comand=true"},
		`unknown command "up" for "conformance"`:           {"--command=run", "up"},
		"a quote is not closed":                            {"--command=run 'a", "--item=" + fine},
		"executable file not found":                        {"--command=no-such-program", "--item=" + fine},
		"no such file":                                     {"--command=true", "--item=missing"},
		`is v1 "Secret"`:                                   {"--command=true", "--item=" + writeFile(t, "apiVersion: v1\nkind: Secret\n")},
		"spec.type: required":                              {"--command=true", "--item=" + writeFile(t, itemHead)},
		"spec.config: required":                            {"--command=true", "--item=" + writeFile(t, itemHead+"spec: {type: t}")},
		`unknown field "spec.typ"`:                         {"--command=true", "--item=" + writeFile(t, itemHead+"spec: {typ: t}")},
		"provide that Target with --target":                {"--command=true", "--item=" + writeFile(t, itemHead+"spec: {type: t, config: {}, target: {name: a}}")},
		`spec.type: is "u", but the type of --item is "t"`: {"--command=true", "--item=" + fine, "--slow-item=" + writeFile(t, itemHead+"spec: {type: u, config: {}}")},
		"--invalid-item: only --item":                      {"--command=true", "--item=" + fine, "--invalid-item=-"},
		"--target: only --item":                            {"--command=true", "--item=" + fine, "--target=-"},
		"spec.secretRef":                                   {"--command=true", "--item=" + fine, "--target=" + writeFile(t, targetHead+"spec: {type: t, secretRef: {name: a}}")},
		"--other-target-labels: needs":                     {"--command=true", "--item=" + fine, "--other-target-labels=a=b"},
		"set only one of them":                             {"--command=true", "--item=" + fine, "--slow-item=" + fine, "--finish-item=" + fine, "--finish-command=true"},
		"need --slow-item":                                 {"--command=true", "--item=" + fine, "--finish-command=true"},
		`there is no check "abbort"`:                       {"--command=true", "--item=" + fine, "--except=abbort=why"},
		"want [revision/]check=reason":                     {"--command=true", "--item=" + fine, "--except=abort"},
		`there is no revision "v3"`:                        {"--command=true", "--item=" + fine, "--except=v3/abort=why"},
		`only[0]: there is no check "abbort"`:              {"--command=true", "--item=" + fine, "--only=abbort"},
		`revisions: there is no revision "annotations"`:    {"--command=true", "--item=" + fine, "--revision=annotations"},
		"--log-file: ":                                     {"--command=true", "--item=" + fine, "--log-file=/"},
	} {
		out := &bytes.Buffer{}
		cmd := NewCommand()
		cmd.SetOut(out)
		cmd.SetErr(out)
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want ErrUsage with %q, got %v", args, want, err)
		}
		if !strings.Contains(out.String(), "Error: ") || strings.Count(out.String(), "\n") > 3 {
			t.Errorf("%q: want the error alone, got %s", args, out)
		}
	}
}
