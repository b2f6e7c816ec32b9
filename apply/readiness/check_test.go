// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	health "github.com/gardener/landscaper/apis/deployer/utils/readinesschecks"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// parseAny parses an object. It returns nil if the text is not an object.
func parseAny(text string) *unstructured.Unstructured {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return nil
	}
	return obj
}

// parseSpec parses the specification of a check.
func parseSpec(t *testing.T, text string) health.CustomReadinessCheckConfiguration {
	t.Helper()
	var out health.CustomReadinessCheckConfiguration
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// newThingCheck returns a check with one requirement for the object in the constant `thing`.
func newThingCheck(t *testing.T, requirement string) *Check {
	t.Helper()
	check, err := Compile(parseSpec(t, "{name: c, resourceSelector: [{apiVersion: example.com/v1, kind: Thing, name: a, namespace: ns}], requirements: ["+requirement+"]}"))
	if err != nil {
		t.Fatalf("Compile(%s): %v", requirement, err)
	}
	return check
}

const thing = `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, namespace: ns}, status: {
  phase: Running, count: 3, ratio: 0.5, whole: 2.0, big: 9007199254740993, enabled: true, nothing: null, list: [1, 2], map: {a: 1, b: [x]},
  items: [{name: a, state: ok, num: 1}, {name: b, state: ok, num: 2}, {name: c}]}}`

func TestRequirementsMatch(t *testing.T) {
	for name, tc := range map[string]struct {
		requirement string
		reason      string // empty if the requirement is met
	}{
		"Equals":               {"{jsonPath: status.phase, operator: '=', values: [{value: Running}]}", ""},
		"DoubleEquals":         {"{jsonPath: .status.phase, operator: '==', values: [{value: Running}]}", ""},
		"EqualsOther":          {"{jsonPath: status.phase, operator: '=', values: [{value: Failed}]}", `status.phase is "Running", want ["Failed"]`},
		"NotEquals":            {"{jsonPath: status.phase, operator: '!=', values: [{value: Failed}]}", ""},
		"NotEqualsSame":        {"{jsonPath: status.phase, operator: '!=', values: [{value: Running}]}", `want anything but ["Running"]`},
		"In":                   {"{jsonPath: status.phase, operator: in, values: [{value: Failed}, {value: Running}]}", ""},
		"InNone":               {"{jsonPath: status.phase, operator: in, values: [{value: Failed}, {value: Gone}]}", `want ["Failed" "Gone"]`},
		"NotIn":                {"{jsonPath: status.phase, operator: notin, values: [{value: Failed}, {value: Gone}]}", ""},
		"NotInOne":             {"{jsonPath: status.phase, operator: notin, values: [{value: Failed}, {value: Running}]}", "want anything but"},
		"Exists":               {"{jsonPath: status.phase, operator: exists}", ""},
		"ExistsNull":           {"{jsonPath: status.nothing, operator: exists}", ""},
		"ExistsIgnoresValues":  {"{jsonPath: status.phase, operator: exists, values: [{value: 7}]}", ""},
		"ExistsNot":            {"{jsonPath: status.absent, operator: exists}", "status.absent does not exist"},
		"DoesNotExist":         {"{jsonPath: status.absent, operator: '!'}", ""},
		"DoesNotExistButDoes":  {"{jsonPath: status.phase, operator: '!'}", "status.phase exists"},
		"MissingEquals":        {"{jsonPath: status.absent, operator: '=', values: [{value: x}]}", "does not exist"},
		"MissingNotEquals":     {"{jsonPath: status.absent, operator: '!=', values: [{value: x}]}", "does not exist"},
		"MissingIn":            {"{jsonPath: status.absent, operator: in, values: [{value: x}]}", "does not exist"},
		"MissingNotIn":         {"{jsonPath: status.absent, operator: notin, values: [{value: x}]}", "does not exist"},
		"Integer":              {"{jsonPath: status.count, operator: '=', values: [{value: 3}]}", ""},
		"IntegerAsFloat":       {"{jsonPath: status.count, operator: '=', values: [{value: 3.0}]}", ""},
		"FloatAsInteger":       {"{jsonPath: status.whole, operator: '=', values: [{value: 2}]}", ""},
		"Float":                {"{jsonPath: status.ratio, operator: '=', values: [{value: 0.5}]}", ""},
		"NumberIsNoText":       {"{jsonPath: status.count, operator: '=', values: [{value: '3'}]}", `is 3, want ["3"]`},
		"BigIsExact":           {"{jsonPath: status.big, operator: '=', values: [{value: 9007199254740992}]}", "9007199254740993"},
		"Bool":                 {"{jsonPath: status.enabled, operator: '=', values: [{value: true}]}", ""},
		"Null":                 {"{jsonPath: status.nothing, operator: '=', values: [{value: null}]}", ""},
		"List":                 {"{jsonPath: status.list, operator: '=', values: [{value: [1.0, 2]}]}", ""},
		"ListOrder":            {"{jsonPath: status.list, operator: '=', values: [{value: [2, 1]}]}", "[1,2]"},
		"Map":                  {"{jsonPath: status.map, operator: '=', values: [{value: {b: [x], a: 1.0}}]}", ""},
		"MapOther":             {"{jsonPath: status.map, operator: '=', values: [{value: {a: 1}}]}", "want"},
		"TextIsNoMap":          {"{jsonPath: status.phase, operator: '=', values: [{value: {a: 1}}]}", "want"},
		"SeveralAllEqual":      {"{jsonPath: 'status.items[*].state', operator: '=', values: [{value: ok}]}", ""},
		"SeveralOneDiffers":    {"{jsonPath: 'status.items[*].num', operator: '=', values: [{value: 1}]}", "is 2, want [1]"},
		"SeveralAllIn":         {"{jsonPath: 'status.items[*].num', operator: in, values: [{value: 1}, {value: 2}]}", ""},
		"SeveralOneForbidden":  {"{jsonPath: 'status.items[*].num', operator: notin, values: [{value: 2}]}", "is 2"},
		"FilterFindsNothing":   {"{jsonPath: 'status.items[?(@.name==\"z\")].state', operator: '=', values: [{value: ok}]}", "does not exist"},
		"FilterFindsOne":       {"{jsonPath: 'status.items[?(@.name==\"a\")].state', operator: '=', values: [{value: ok}]}", ""},
		"DoesNotExistAnywhere": {"{jsonPath: 'status.items[*].x', operator: '!'}", ""},
	} {
		t.Run(name+" [D13]", func(t *testing.T) {
			got, err := newThingCheck(t, tc.requirement).CheckObject(t.Context(), parseObject(t, thing))
			if err != nil {
				t.Fatal(err)
			}
			if got.IsReady() != (tc.reason == "") || !strings.Contains(got.Message, tc.reason) {
				t.Errorf("Of(...): want %q, got %+v", tc.reason, got)
			}
			if !got.IsReady() && !strings.HasPrefix(got.Message, `check "c": Thing.example.com ns/a: `) {
				t.Errorf("Of(...): the reason names check and object, got %q", got.Message)
			}
		})
	}
}

func TestErrorsHideSecretValues(t *testing.T) {
	check, err := Compile(parseSpec(t, "{name: c, resourceSelector: [{apiVersion: v1, kind: Secret, name: s}], requirements: [{jsonPath: data.p, operator: '=', values: [{value: CANARY2}]}]}"))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := check.CheckObject(t.Context(), parseObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {p: CANARY1}}"))
	if got.IsReady() || strings.Contains(got.Message, "CANARY") || !strings.Contains(got.Message, "data.p") {
		t.Errorf("Of(...): got %+v", got)
	}
}

// fakeCluster is a Lookup that returns fixed objects.
type fakeCluster struct {
	objects []*unstructured.Unstructured
	err     error
}

func (c fakeCluster) Get(_ context.Context, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	for _, obj := range c.objects {
		if obj.GetKind() == ref.Kind && obj.GetName() == ref.Name && obj.GetNamespace() == ref.Namespace {
			return obj, c.err
		}
	}
	return nil, c.err
}

func (c fakeCluster) List(_ context.Context, gvk schema.GroupVersionKind, labels map[string]string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, obj := range c.objects {
		if obj.GroupVersionKind() == gvk && obj.GetLabels()["app"] == labels["app"] {
			found = append(found, obj)
		}
	}
	return found, c.err
}

// newPods returns pods of two namespaces. One of the pods is not running.
func newPods(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return []*unstructured.Unstructured{
		parseObject(t, "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ms, labels: {app: web}}, status: {phase: Running}}"),
		parseObject(t, "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: ns, labels: {app: web}}, status: {phase: Running}}"),
		parseObject(t, "{apiVersion: v1, kind: Pod, metadata: {name: c, namespace: ns, labels: {app: log}}, status: {phase: Pending}}"),
	}
}

func TestRun(t *testing.T) {
	const running = ", requirements: [{jsonPath: status.phase, operator: '=', values: [{value: Running}]}]}"
	for name, tc := range map[string]struct {
		check  string
		reason string
	}{
		"Resource":        {"{name: c, resourceSelector: [{apiVersion: v1, kind: Pod, name: a, namespace: ms}]" + running, ""},
		"ResourceMissing": {"{name: c, resourceSelector: [{apiVersion: v1, kind: Pod, name: z, namespace: ms}]" + running, "Pod ms/z: does not exist"},
		"ResourceNot":     {"{name: c, resourceSelector: [{apiVersion: v1, kind: Pod, name: a, namespace: ms}, {apiVersion: v1, kind: Pod, name: c, namespace: ns}]" + running, "Pod ns/c: status.phase"},
		"Labels":          {"{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: web}}" + running, ""},
		"LabelsNot":       {"{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: log}}" + running, "Pod ns/c"},
		"LabelsNone":      {"{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: db}}" + running, "no Pod has the labels app=db"},
		"Both":            {"{name: c, resourceSelector: [{apiVersion: v1, kind: Pod, name: a, namespace: ms}], labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: log}}" + running, "Pod ns/c"},
		"Disabled":        {"{name: c, disabled: true, resourceSelector: [{apiVersion: v1, kind: Pod, name: z}]" + running, ""},
	} {
		t.Run(name+" [D13]", func(t *testing.T) {
			check, err := Compile(parseSpec(t, tc.check))
			if err != nil {
				t.Fatal(err)
			}
			got, err := check.Run(t.Context(), fakeCluster{objects: newPods(t)})
			if err != nil || got.IsReady() != (tc.reason == "") || !strings.Contains(got.Message, tc.reason) {
				t.Errorf("Run(...): want %q, got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestRunChecksAllObjects ensures that Run checks all objects that List returns. An empty list must have the same
// result as a nil list.
func TestRunChecksAllObjects(t *testing.T) {
	check, err := Compile(parseSpec(t, "{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: web}}, requirements: [{jsonPath: status.phase, operator: '=', values: [{value: Running}]}]}"))
	if err != nil {
		t.Fatal(err)
	}
	found := newPods(t)[:2]
	found = append(found, parseObject(t, "{apiVersion: v1, kind: Pod, metadata: {name: z, namespace: ns, labels: {app: web}}, status: {phase: Pending}}"))
	for name, tc := range map[string]struct {
		found  []*unstructured.Unstructured
		reason string
	}{
		"one of three objects is not ready": {found, "Pod ns/z: status.phase"},
		"nil list":                          {nil, "no Pod has the labels app=web"},
		"an empty list":                     {[]*unstructured.Unstructured{}, "no Pod has the labels app=web"},
	} {
		t.Run(name+" [D13]", func(t *testing.T) {
			got, err := check.Run(t.Context(), fakeList(tc.found))
			if err != nil || got.IsReady() || !strings.Contains(got.Message, tc.reason) {
				t.Errorf("Run(...): want %q, got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// fakeList is a Lookup. Its method List returns the same objects for every kind and every selector.
type fakeList []*unstructured.Unstructured

func (fakeList) Get(context.Context, lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	return nil, nil
}

func (l fakeList) List(context.Context, schema.GroupVersionKind, map[string]string) ([]*unstructured.Unstructured, error) {
	return l, nil
}

func TestRunForgetsRemovedObjects(t *testing.T) {
	t.Run("results of removed objects are dropped [H-19]", func(t *testing.T) {
		check, err := Compile(parseSpec(t, "{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: log}}, requirements: [{jsonPath: status.phase, operator: '=', values: [{value: Running}]}]}"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := check.Run(t.Context(), fakeCluster{objects: newPods(t)}); err != nil || got.IsReady() {
			t.Fatalf("Run(...): the pending pod is not ready, got %+v, %v", got, err)
		}
		replaced := parseObject(t, "{apiVersion: v1, kind: Pod, metadata: {name: d, namespace: ns, labels: {app: log}}, status: {phase: Running}}")
		if got, err := check.Run(t.Context(), fakeCluster{objects: []*unstructured.Unstructured{replaced}}); err != nil || !got.IsReady() {
			t.Errorf("Run(...): want ready, got %+v, %v", got, err)
		}
	})
}

func TestRunErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, text := range []string{
		"{name: c, resourceSelector: [{apiVersion: v1, kind: Pod, name: a}], requirements: [{jsonPath: a, operator: exists}]}",
		"{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: web}}, requirements: [{jsonPath: a, operator: exists}]}",
	} {
		check, err := Compile(parseSpec(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check.Run(t.Context(), fakeCluster{err: boom}); !errors.Is(err, boom) || !strings.Contains(err.Error(), `"c"`) {
			t.Errorf("Run(...): want the lookup's error with the check's name, got %v", err)
		}
	}
}

func TestCompileRejectsInvalidChecks(t *testing.T) {
	const (
		resource = "resourceSelector: [{apiVersion: v1, kind: Pod, name: a}]"
		exists   = "requirements: [{jsonPath: a, operator: exists}]"
	)
	for name, tc := range map[string]struct{ spec, path string }{
		"NoName":            {"{" + resource + ", " + exists + "}", "name"},
		"EmptyTarget":       {"{name: c, targetName: '', " + resource + ", " + exists + "}", "targetName"},
		"NoSelector":        {"{name: c, " + exists + "}", "resourceSelector"},
		"NoVersion":         {"{name: c, resourceSelector: [{kind: Pod, name: a}], " + exists + "}", "resourceSelector[0].apiVersion"},
		"BadVersion":        {"{name: c, resourceSelector: [{apiVersion: a/b/c, kind: Pod, name: a}], " + exists + "}", "resourceSelector[0].apiVersion"},
		"NoKind":            {"{name: c, resourceSelector: [{apiVersion: v1, name: a}], " + exists + "}", "resourceSelector[0].kind"},
		"NoObject":          {"{name: c, resourceSelector: [{apiVersion: v1, kind: Pod}], " + exists + "}", "resourceSelector[0].name"},
		"NoLabels":          {"{name: c, labelSelector: {apiVersion: v1, kind: Pod}, " + exists + "}", "labelSelector.matchLabels"},
		"BadLabel":          {"{name: c, labelSelector: {apiVersion: v1, kind: Pod, matchLabels: {app: 'a b'}}, " + exists + "}", "labelSelector.matchLabels"},
		"LabelKind":         {"{name: c, labelSelector: {apiVersion: v1, matchLabels: {app: a}}, " + exists + "}", "labelSelector.kind"},
		"NoRequirement":     {"{name: c, " + resource + "}", "requirements"},
		"NoPath":            {"{name: c, " + resource + ", requirements: [{operator: exists}]}", "requirements[0].jsonPath"},
		"BadPath":           {"{name: c, " + resource + ", requirements: [{jsonPath: 'a[', operator: exists}]}", "requirements[0].jsonPath"},
		"NoOperator":        {"{name: c, " + resource + ", requirements: [{jsonPath: a}]}", "requirements[0].operator"},
		"UnknownOperator":   {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: exists}, {jsonPath: a, operator: gt, values: [{value: 1}]}]}", "requirements[1].operator"},
		"NoValue":           {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: '='}]}", "requirements[0].values"},
		"NoValueIn":         {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: in}]}", "requirements[0].values"},
		"TwoValues":         {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: '!=', values: [{value: 1}, {value: 2}]}]}", "requirements[0].values"},
		"BareValue":         {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: '=', values: [7]}]}", "requirements[0].values[0]"},
		"OtherField":        {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: '=', values: [{valeu: 7}]}]}", "requirements[0].values[0]"},
		"NoValueInside":     {"{name: c, " + resource + ", requirements: [{jsonPath: a, operator: '=', values: [{}]}]}", "requirements[0].values[0]"},
		"DisabledIsChecked": {"{name: c, disabled: true, " + resource + "}", "requirements"},
	} {
		t.Run(name+" [D13][H-29]", func(t *testing.T) {
			_, err := Compile(parseSpec(t, tc.spec))
			var fault *SpecError
			if !errors.As(err, &fault) {
				t.Fatalf("Compile(...): want a SpecError, got %v", err)
			}
			if diff := cmp.Diff(tc.path, fault.Path); diff != "" {
				t.Errorf("Compile(...): %v: -want path, +got:\n%s", err, diff)
			}
		})
	}
}

// TestRequirementsLimitTheirWork expects an error if evaluating a requirement takes too much work, also for the
// operator "!" (does not exist). The error names the field.
func TestRequirementsLimitTheirWork(t *testing.T) {
	deep := map[string]any{}
	for range 800 {
		deep = map[string]any{"a": deep}
	}
	wide := make([]any, 60_000)
	for i := range wide {
		wide[i] = "no"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "status": deep, "items": wide}}
	long := "{value: " + strings.Repeat("no", 1000) + "}"
	for name, tc := range map[string]struct{ requirement, path string }{
		"number of steps [F5]":    {"{jsonPath: ..a..a, operator: exists}", "requirements[0].jsonPath"},
		"absence of a value [F5]": {"{jsonPath: ..a..a, operator: '!'}", "requirements[0].jsonPath"},
		"number of values [F5]":   {"{jsonPath: 'items[*]', operator: notin, values: [" + long + "]}", "requirements[0].values"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newThingCheck(t, tc.requirement).CheckObject(t.Context(), obj)
			if fault, ok := errors.AsType[*SpecError](err); !ok || fault.Path != tc.path || got.IsReady() {
				t.Errorf("Of(...): want an error at %s, got %+v, %v", tc.path, got, err)
			}
		})
	}
	t.Run("a requirement stops when the context ends [F5]", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		over := errors.New("over")
		cancel(over)
		if _, err := newThingCheck(t, "{jsonPath: a, operator: '!'}").CheckObject(ctx, obj); !errors.Is(err, over) {
			t.Errorf("Of(ended context): got %v", err)
		}
	})
}

func TestFinishedObjectsPassChecks(t *testing.T) {
	t.Run("an object that is done and gone meets all requirements [F91]", func(t *testing.T) {
		check, err := Compile(health.CustomReadinessCheckConfiguration{
			Name:         "c",
			Resource:     []lsv1alpha1.TypedObjectReference{{APIVersion: "batch/v1", Kind: "Job", ObjectReference: lsv1alpha1.ObjectReference{Name: "a", Namespace: "ns"}}},
			Requirements: []health.RequirementSpec{{JsonPath: "status.succeeded", Operator: "exists"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if result, err := check.Run(t.Context(), fakeCluster{err: ErrFinished}); err != nil || !result.IsReady() {
			t.Errorf("Run(...) = %+v, %v, want a ready result", result, err)
		}
	})
}
