// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/explain"
)

const (
	guide  = "../../docs/troubleshooting.md"
	fields = "../../docs/explain.md"
)

var update = flag.Bool("update", false, "write the texts of the cases into the guide")

// block matches an example in the guide: a comment with the name of a case, followed by the text of the explanation.
var block = regexp.MustCompile("(?s)<!-- explain: ([^>]*) -->\n```text\n(.*?)```\n")

func TestExplainCases(t *testing.T) {
	for name, tc := range cases {
		t.Run(name+" [V1]", func(t *testing.T) {
			e := explain.Explain(tc.facts)
			var symptoms []string
			for _, a := range e.Advice {
				symptoms = append(symptoms, a.Symptom)
			}
			if diff := cmp.Diff(tc.advice, symptoms); diff != "" {
				t.Errorf("symptoms: -want, +got:\n%s\n%s", diff, e.Format(explain.Style{}))
			}
			for l := range strings.SplitSeq(e.Format(explain.Style{}), "\n") {
				if utf8.RuneCountInString(l) > explain.MaxLineWidth {
					t.Errorf("the line is too long: %s", l)
				}
			}
		})
	}
}

func TestGuideShowsAllCases(t *testing.T) {
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	text := block.ReplaceAllStringFunc(string(raw), func(found string) string {
		name := block.FindStringSubmatch(found)[1]
		shown[name] = true
		tc, ok := cases[name]
		if !ok {
			t.Errorf("the guide shows a case %q, which does not exist", name)
			return found
		}
		return "<!-- explain: " + name + " -->\n```text\n" + explain.Explain(tc.facts).Format(explain.Style{}) + "```\n"
	})
	if *update {
		if err := os.WriteFile(guide, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the guide shows the output of explain [V6]", func(t *testing.T) {
		if diff := cmp.Diff(text, string(raw)); diff != "" && !*update {
			t.Errorf("go test ./explain -run TestGuideShowsAllCases -update writes this:\n%s", diff)
		}
	})
	t.Run("the guide contains each case and each symptom [V6]", func(t *testing.T) {
		for name := range cases {
			if !shown[name] {
				t.Errorf("the guide lacks the case %q", name)
			}
		}
		for _, symptom := range explain.AllSymptoms() {
			if !strings.Contains(string(raw), "\n## "+strings.ToUpper(symptom[:1])+symptom[1:]+"\n") {
				t.Errorf("the guide lacks a section for %q", symptom)
			}
		}
	})
}

func TestEveryReasonHasASentence(t *testing.T) {
	t.Run("only reasons of the library have a sentence [V1]", func(t *testing.T) {
		if diff := cmp.Diff(slices.Sorted(slices.Values(contract.AllReasons())), explain.AllExplainedReasons()); diff != "" {
			t.Errorf("-reasons of the contract, +explained:\n%s", diff)
		}
	})
}

func TestDetails(t *testing.T) {
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"a paused item without a due run": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withAnnotation(contract.PausedAnnotation, "true")(f)
		}, "The item is paused."},
		"a run that begins": {withJob(0), "begins with the next reconcile"},
		"a background run": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withAnnotation("landscaper.gardener.cloud/operation", "force-reconcile")(f)
		}, "background run"},
		"a new job for test-reconcile": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withAnnotation("landscaper.gardener.cloud/operation", "test-reconcile")(f)
		}, "a job ID of its own"},
		"a deletion without a call of Delete": {func(f *explain.Facts) {
			withDeletion(0)(f)
			withJob(0)(f)
			withAnnotation("landscaper.gardener.cloud/delete-without-uninstall", "true")(f)
		}, "only removes the finalizer"},
		"an expired run":              {withStartedRun("Init", 11*60e9), "The deadline has passed"},
		"an item that a hook may run": {withFinishedRun("Succeeded", 0), "may force a run"},
	} {
		t.Run(name+" [V1]", func(t *testing.T) {
			e := explain.Explain(newFacts(tc.change))
			if !strings.Contains(strings.Join(e.Decision.Details, " "), tc.want) {
				t.Errorf("want %q, got %q", tc.want, e.Decision.Details)
			}
		})
	}
}

func TestNextJob(t *testing.T) {
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"the next job reconciles":    {withFinishedRun("Succeeded", 0), "would call the deployer's Reconcile."},
		"the next job deletes":       {func(f *explain.Facts) { withFinishedRun("Succeeded", 0)(f); withDeletion(0)(f) }, "would call the deployer's Delete"},
		"the next job has no change": {func(f *explain.Facts) { withFinishedRun("Succeeded", 0)(f); f.Item.Spec.UpdateOnChangeOnly = true }, "without a call"},
		"the next job of a paused item": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withAnnotation(contract.PausedAnnotation, "true")(f)
		}, "held back"},
		"the next job of an ignored item": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withAnnotation("landscaper.gardener.cloud/ignore", "true")(f)
		}, "would do nothing: the item is finished"},
		"the next job with force-reconcile": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withAnnotation("landscaper.gardener.cloud/operation", "force-reconcile")(f)
		}, "ForceReconcile"},
		"the next job deletes without an uninstall": {func(f *explain.Facts) {
			withFinishedRun("Succeeded", 0)(f)
			withDeletion(0)(f)
			withAnnotation("landscaper.gardener.cloud/delete-without-uninstall", "true")(f)
		}, "only remove the finalizer"},
		"annotation revision": {func(f *explain.Facts) { f.Item.Annotations = nil }, "The next operation reconcile would call"},
	} {
		t.Run(name+" [V1]", func(t *testing.T) {
			if got := explain.Explain(newFacts(tc.change)).NextJob; !strings.Contains(got, tc.want) {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestTextEscapesControlCharacters(t *testing.T) {
	const hostile = "a\x1b[31mred\x07\u202eb\r\nnext\u2028line\x9b"
	f := newFacts(withStartedRun("Progressing", 0), withWaiting(hostile, 0), withLastError(hostile, hostile, hostile, hostile), withEvent("Drift", hostile),
		withProviderStatus(`{"components": [{"name": "a\u001b[2J", "state": "Blocked", "reason": "\u0007", "blockedBy": ["\u001b"]}],
			"inventory": {"entries": [{"v": "v1\u001b", "k": "Pod\u001b", "ns": "\u001b", "n": "\u001b]0;x\u0007"}]}}`))
	f.Item.Status.Deployer.Name = hostile
	f.Item.Spec.Target.Name = hostile
	f.Deployers[0].Name, f.Deployers[0].ItemSelector, f.Deployers[0].Lease.Holder = hostile, "a=b", hostile
	f.Item.Status.LastError.Message = strings.Repeat(hostile, 10_000)
	t.Run("the text escapes control characters and is limited [V2]", func(t *testing.T) {
		e := explain.Explain(f)
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text := e.Format(explain.Style{})
		if json.Unmarshal(raw, new(any)) != nil || len(raw) > 32<<10 || len(text) > 16<<10 {
			t.Errorf("%d and %d bytes", len(raw), len(text))
		}
		for _, r := range text {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Fatalf("%U is in the text: %q", r, text)
			}
		}
		if strings.Contains(string(raw), `\u001b`) || strings.Contains(string(raw), "\u202e") {
			t.Errorf("control characters are in the JSON: %s", raw)
		}
	})
	t.Run("the text is colored only on a terminal [V2]", func(t *testing.T) {
		e := explain.Explain(newFacts())
		if strings.Contains(e.Format(explain.Style{}), "\x1b") || !strings.Contains(e.Format(explain.Style{Color: true}), "\x1b[") {
			t.Error("want escape sequences with Color, and none without")
		}
	})
}

func TestExplanationHidesConfigurations(t *testing.T) {
	t.Run("an explanation contains nothing of a configuration [V2]", func(t *testing.T) {
		f := newFacts(withFinishedRun("Succeeded", 0))
		f.Item.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{"password": "s3cret", "continuousReconcile": {"cron": "s3cret"}}`)}
		body, err := json.Marshal(explain.Explain(f))
		if err != nil || strings.Contains(string(body), "s3cret") {
			t.Errorf("%v: %s", err, body)
		}
	})
}

// TestSchemaIsDocumented checks that the documentation lists each field of the output.
func TestSchemaIsDocumented(t *testing.T) {
	raw, err := os.ReadFile(fields)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("each field of the output is documented [V3]", func(t *testing.T) {
		for _, root := range []any{explain.Explanation{}, explain.Tree{}} {
			for _, path := range fieldsOf(reflect.TypeOf(root), "", map[reflect.Type]bool{}) {
				if !strings.Contains(string(raw), "| `"+path+"` |") {
					t.Errorf("%s lacks the field %s", fields, path)
				}
			}
		}
	})
}

// fieldsOf lists the JSON fields of a type, with their paths.
func fieldsOf(t reflect.Type, path string, seen map[reflect.Type]bool) (out []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || !strings.Contains(t.PkgPath(), "deployerkit") {
		return nil
	}
	seen[t] = true
	defer delete(seen, t)
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		full := strings.TrimPrefix(path+"."+name, ".")
		out = append(append(out, full), fieldsOf(field.Type, full, seen)...)
	}
	return out
}
