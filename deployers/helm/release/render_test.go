// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/chart/charttest"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
)

// load loads a chart.
func load(t *testing.T, files charttest.Files) *release.Chart {
	t.Helper()
	unpacked, err := chart.Unpack(files.Archive(), chart.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := release.Load(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders a chart with values in JSON.
func render(t *testing.T, files charttest.Files, values string, change ...func(*release.Input)) (*release.Rendered, error) {
	t.Helper()
	decoded, err := release.DecodeValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	in := release.Input{Chart: load(t, files), Name: "web", Namespace: "shop", Revision: 1, Values: decoded}
	for _, f := range change {
		f(&in)
	}
	return release.NewRenderer(release.Limits{Time: 10 * time.Minute}).Render(t.Context(), "key", in)
}

// configMap is a template for a ConfigMap with one value.
func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  value: %s\n", name, value)
}

// names returns the kinds, names and values of manifests.
func names(manifests []release.Manifest) (out []string) {
	for _, m := range manifests {
		text := m.Object.GetKind() + " " + m.Object.GetName()
		if data, ok := m.Object.Object["data"].(map[string]any); ok {
			text += fmt.Sprintf(" %v", data["value"])
		}
		out = append(out, text)
	}
	return out
}

func TestRender(t *testing.T) {
	subchart := charttest.Files{
		"Chart.yaml":       "apiVersion: v2\nname: sub\nversion: 2.0.0\n",
		"values.yaml":      "value: default\nexports: {data: {imported: exported}}\n",
		"templates/a.yaml": configMap("{{ .Chart.Name }}", "{{ .Values.value }}-{{ .Values.global.region }}"),
	}
	parent := charttest.Files{
		"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\ndependencies:\n" +
			"- {name: sub, version: 2.0.0, alias: first, condition: first.enabled, import-values: [data]}\n" +
			"- {name: sub, version: 2.0.0, alias: second, tags: [extra]}\n",
		"values.yaml":      "first: {enabled: false}\ntags: {extra: true}\nglobal: {region: eu}\n",
		"charts/sub.tgz":   string(subchart.Archive()),
		"templates/a.yaml": configMap("parent", "{{ .Values.imported }}"),
	}
	for _, test := range []struct {
		name   string
		files  charttest.Files
		values string
		want   []string
	}{
		{"leaves out a subchart whose condition is false [E24]", parent, `{}`, []string{"ConfigMap second default-eu", "ConfigMap parent <nil>"}},
		{
			"renders a subchart whose condition is true, and imports its values [E24]", parent, `{"first": {"enabled": true}, "tags": {"extra": false}}`,
			[]string{"ConfigMap first default-eu", "ConfigMap parent exported"},
		},
		{
			"passes values and global values to subcharts [E6]", parent, `{"second": {"value": "own"}, "global": {"region": "us"}}`,
			[]string{"ConfigMap second own-us", "ConfigMap parent <nil>"},
		},
		{
			"removes a default whose value is null [E6]",
			charttest.Files{"values.yaml": "a: {b: c}\n", "templates/a.yaml": configMap("a", `{{ hasKey .Values.a "b" }}`)},
			`{"a": {"b": null}}`,
			[]string{"ConfigMap a false"},
		},
		{
			"renders large integers exactly [E6]",
			charttest.Files{"templates/a.yaml": configMap("a", `"{{ .Values.big }} {{ .Values.huge }}"`)},
			`{"big": 9007199254740993, "huge": 123456789012345678901234567890}`,
			[]string{"ConfigMap a 9007199254740993 123456789012345678901234567890"},
		},
		{
			"sorts objects in the order of Helm [E25]", charttest.Files{
				"templates/a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\n" + configMap("a", "1"),
				"templates/b.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n---\n# a comment\n---\n",
			}, `{}`, []string{"Namespace ns", "ConfigMap a 1", "Deployment d"},
		},
		{
			"separates hooks from objects", charttest.Files{
				"templates/a.yaml": configMap("a", "1"),
				"templates/b.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n",
			}, `{}`, []string{"ConfigMap a 1"},
		},
		{
			"counts iterations without an effect on the output", charttest.Files{
				"templates/a.yaml": configMap("a", "\"{{- range $i, $x := .Values.list -}}\n  {{ if eq $x \"}}\" }}{{ continue }}{{ end }} {{ $x }}{{ range until 2 }}.{{ end }}\n{{- else }}none{{ end }}\""),
			}, `{"list": ["x", "}}", "y"]}`, []string{"ConfigMap a  x.. y.."},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			rendered, err := render(t, test.files, test.values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, names(rendered.Objects)); diff != "" {
				t.Errorf("unexpected objects (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("uses the version and the API versions of the target [E24]", func(t *testing.T) {
		rendered, err := render(t, charttest.Files{
			"templates/a.yaml": configMap("a", `{{ .Capabilities.KubeVersion.Minor }}-{{ .Capabilities.APIVersions.Has "example.com/v1/Database" }}`),
		}, `{}`, func(in *release.Input) {
			in.Capabilities = &release.Capabilities{KubeVersion: "v1.36.3", APIVersions: []string{"example.com/v1/Database"}}
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ConfigMap a 36-true"}, names(rendered.Objects)); diff != "" {
			t.Errorf("unexpected objects (-want +got):\n%s", diff)
		}
	})
	t.Run("returns the CustomResourceDefinitions, and ignores other objects in crds [Ex22]", func(t *testing.T) {
		rendered, err := render(t, charttest.Files{"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\n---\n" + configMap("a", "1")}, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{{"CustomResourceDefinition b"}, {"ConfigMap a 1"}}, [][]string{names(rendered.CRDs), names(rendered.Ignored)}); diff != "" {
			t.Errorf("unexpected objects (-want +got):\n%s", diff)
		}
	})
}

func TestRenderErrors(t *testing.T) {
	const schema = `{"type": "object", "required": ["size"], "properties": {"password": {"pattern": "^[a-z]+$"}, "size": {"type": "integer"}}}`
	for _, test := range []struct {
		name   string
		files  charttest.Files
		values string
		reason release.Reason
		want   string
	}{
		{
			"names the template and the line of an error, without values [Ex25]",
			charttest.Files{"templates/a.yaml": "\n{{ fail (printf \"bad password %s\" .Values.password) }}"},
			`{"password": "s3cr3t-value"}`, release.ReasonTemplate, "chart test 1.0.0: execution error at (test/templates/a.yaml:2:3): bad password ***",
		},
		{
			"names the position of a document that is not an object [E25]",
			charttest.Files{"templates/a.yaml": configMap("a", "1") + "---\njust text\n"},
			`{}`, release.ReasonManifest, "test/templates/a.yaml, document 2: is not an object",
		},
		{
			"rejects a document without a kind [E25]",
			charttest.Files{"templates/a.yaml": "apiVersion: v1\nmetadata: {name: a}\n"},
			`{}`, release.ReasonManifest, "test/templates/a.yaml, document 1: kind is missing",
		},
		{
			"rejects a generated name",
			charttest.Files{"templates/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a}\n"},
			`{}`, release.ReasonManifest, "test/templates/a.yaml, document 1: metadata.name is missing (generated names are not supported)",
		},
		{
			"names all violations of the schema, without values [Ex25]",
			charttest.Files{"values.schema.json": schema},
			`{"password": "s3cr3t-value"}`, release.ReasonValues, `values.schema.json of chart test: values must contain size; password must match the pattern "^[a-z]+$"`,
		},
		{
			"rejects a reference of the schema to a file [Ex27]",
			charttest.Files{"values.schema.json": `{"$ref": "file:///etc/passwd"}`},
			`{}`, release.ReasonValues, `a schema must not refer to other documents`,
		},
		{
			"rejects a reference of the schema to a URL [Ex27]",
			charttest.Files{"values.schema.json": `{"properties": {"a": {"$ref": "http://127.0.0.1:1/a"}}}`},
			`{}`, release.ReasonValues, `a schema must not refer to other documents`,
		},
		{
			"rejects a chart for another Kubernetes version",
			charttest.Files{"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\nkubeVersion: \">=1.99\"\n"},
			`{}`, release.ReasonVersion, "chart test 1.0.0 requires Kubernetes >=1.99, the target has v",
		},
		{
			"stops an endless loop [Ex29]",
			charttest.Files{"templates/a.yaml": "{{ range 10000000000 }}a long text{{ end }}"},
			`{}`, release.ReasonLimit, "the templates of chart test 1.0.0 produce more than 67108864 bytes",
		},
		{
			"stops a function that creates a large value [Ex29]",
			charttest.Files{"templates/a.yaml": "{{ repeat 1000000000 .Chart.Name }}"},
			`{}`, release.ReasonLimit, `the function "repeat" in the templates of chart test 1.0.0 creates too large a value`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := render(t, test.files, test.values)
			got, ok := errors.AsType[*release.Error](err)
			if !ok || got.Reason != test.reason {
				t.Fatalf("the error is %v, want an *Error with the reason %s", err, test.reason)
			}
			if !strings.Contains(got.Text, test.want) {
				t.Errorf("the error is %q, want %q", got.Text, test.want)
			}
		})
	}
	t.Run("skips the schema if requested [E10]", func(t *testing.T) {
		if _, err := render(t, charttest.Files{"values.schema.json": schema}, `{}`, func(in *release.Input) { in.SkipSchema = true }); err != nil {
			t.Error(err)
		}
	})
	t.Run("returns the error of a lookup, which another attempt may resolve", func(t *testing.T) {
		unreachable := errors.New("unreachable")
		_, err := render(t, charttest.Files{"templates/a.yaml": `{{ lookup "v1" "Secret" "ns" "a" }}`}, `{}`, func(in *release.Input) {
			in.Lookup = func(context.Context, string, string, string, string) (map[string]any, error) { return nil, unreachable }
		})
		if !errors.Is(err, unreachable) {
			t.Errorf("the error is %v, want %v", err, unreachable)
		}
	})
	t.Run("does not resolve host names [Ex27]", func(t *testing.T) {
		rendered, err := render(t, charttest.Files{"templates/a.yaml": configMap("a", `"<{{ getHostByName "localhost" }}>"`)}, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ConfigMap a <>"}, names(rendered.Objects)); diff != "" {
			t.Errorf("unexpected objects (-want +got):\n%s", diff)
		}
	})
}

func TestRenderTimeLimit(t *testing.T) {
	renderer := release.NewRenderer(release.Limits{Time: 2 * time.Second, Output: 1 << 40})
	slow := release.Input{Chart: load(t, charttest.Files{"templates/a.yaml": "{{ range 1000000000000 }}{{ end }}"}), Name: "a", Namespace: "b"}
	try := func(ctx context.Context, t *testing.T) {
		t.Helper()
		_, err := renderer.Render(ctx, "slow", slow)
		if got, ok := errors.AsType[*release.Error](err); !ok || got.Reason != release.ReasonLimit {
			t.Fatalf("the error is %v, want an *Error with the reason %s", err, release.ReasonLimit)
		}
	}
	t.Run("stops a rendering that takes too long [Ex29]", func(t *testing.T) { try(t.Context(), t) })
	t.Run("does not repeat a rendering that took too long [Ex29]", func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel() // a rendering would return the error of the context
		try(ended, t)
	})
	t.Run("renders other charts afterwards [Ex29]", func(t *testing.T) {
		fast := release.Input{Chart: load(t, charttest.Files{}), Name: "a", Namespace: "b"}
		var err error
		for i := range 30 { // the machine may be too busy for the limit
			if _, err = renderer.Render(t.Context(), fmt.Sprint("fast", i), fast); err == nil {
				return
			}
		}
		t.Error(err)
	})
}

func TestSlowLookup(t *testing.T) {
	files := charttest.Files{"templates/a.yaml": `{{ if lookup "v1" "Secret" "ns" "a" }}{{ end }}`}
	input := func(lookup release.Lookup) release.Input {
		return release.Input{Chart: load(t, files), Name: "a", Namespace: "b", Lookup: lookup}
	}
	t.Run("does not delay other renderings [Ex29]", func(t *testing.T) {
		renderer := release.NewRenderer(release.Limits{Time: 5 * time.Minute, Concurrent: 1})
		begun, proceed, done := make(chan any), make(chan any), make(chan error)
		go func() {
			_, err := renderer.Render(t.Context(), "slow", input(func(context.Context, string, string, string, string) (map[string]any, error) {
				close(begun)
				<-proceed
				return nil, nil
			}))
			done <- err
		}()
		<-begun
		if _, err := renderer.Render(t.Context(), "fast", input(nil)); err != nil {
			t.Error(err)
		}
		close(proceed)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("is an error that another attempt may resolve [Ex29]", func(t *testing.T) {
		renderer := release.NewRenderer(release.Limits{Time: 2 * time.Second})
		in := input(func(ctx context.Context, _, _, _, _ string) (map[string]any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		_, err := renderer.Render(t.Context(), "slow", in)
		if _, final := errors.AsType[*release.Error](err); final || err == nil || !strings.Contains(err.Error(), "does not respond to a lookup within 2s") {
			t.Errorf("the error is %v, want one about the lookup", err)
		}
	})
}
