// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var kind = mockv1alpha1.SchemeGroupVersion.WithKind("Configuration")

const head = "apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1\nkind: Configuration\n"

func TestReadConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		content string
		want    mockv1alpha1.Configuration
		err     string
	}{
		"Empty": {reason: "All fields are optional.", content: head},
		"Full": {
			reason:  "Identity and target selectors are read.",
			content: head + "identity: me\ntargetSelector:\n- targets: [{name: a, namespace: b}]\n",
			want: mockv1alpha1.Configuration{
				Identity:       "me",
				TargetSelector: []lsv1alpha1.TargetSelector{{Targets: []lsv1alpha1.ObjectReference{{Name: "a", Namespace: "b"}}}},
			},
		},
		"Unknown":   {reason: "A misspelt field is an error.", content: head + "identidy: me\n", err: `unknown field "identidy"`},
		"Twice":     {reason: "A field that is there twice is an error.", content: head + "identity: a\nidentity: b\n", err: "identity"},
		"OtherKind": {reason: "The kind must fit.", content: "apiVersion: v1\nkind: Secret\n", err: `is v1 "Secret", want mock.`},
		"NoKind":    {reason: "There must be a kind.", content: "identity: me\n", err: `is  "", want mock.`},
		"Broken":    {reason: "Text that is no YAML is an error.", content: "a: [", err: "decode configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadConfig[mockv1alpha1.Configuration](path, kind)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nReadConfig(...): want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nReadConfig(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(&tc.want, got, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
				t.Errorf("%s\nReadConfig(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadConfigWithoutFile(t *testing.T) {
	if got, err := ReadConfig[mockv1alpha1.Configuration]("", kind); got != nil || err != nil {
		t.Errorf("ReadConfig(no path): want nil, nil, got %v, %v", got, err)
	}
	if _, err := ReadConfig[mockv1alpha1.Configuration](filepath.Join(t.TempDir(), "none"), kind); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadConfig(missing file): want not exist, got %v", err)
	}
}
