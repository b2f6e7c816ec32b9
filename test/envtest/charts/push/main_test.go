// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/deployerkit/deployerkit/internal/chart"
	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

const commit = "0123456789012345678901234567890123456789"

// pushChart pushes the chart of the manifest deployer to a new registry, and returns the arguments of the command.
func pushChart(t *testing.T) *publication {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	p := &publication{
		registry: strings.TrimPrefix(server.URL, "http://") + "/x", version: "v0.2.0", dir: t.TempDir(), commit: commit, created: time.Unix(1_700_000_000, 0),
	}
	check(t, p.push("manifest", chart.NewManifestChart))
	return p
}

func TestPush(t *testing.T) {
	p := pushChart(t)
	pulled, err := helm.PullChart(p.registry+"/charts/manifest-deployer:0.2.0", t.TempDir())
	check(t, err)
	t.Run("helm pulls the package that is also in the directory", func(t *testing.T) {
		if !bytes.Equal(read(t, pulled), read(t, filepath.Join(p.dir, "manifest-deployer-0.2.0.tgz"))) {
			t.Error("they differ")
		}
	})
	t.Run("a pulled chart installs the image of its version from its registry [O13]", func(t *testing.T) {
		rendered, err := helm.Render(pulled, "rel", "ls-system", "")
		check(t, err)
		for _, want := range []string{`image: "` + p.registry + `/manifest-deployer:v0.2.0"`, `"helm.sh/chart": "manifest-deployer-0.2.0"`} {
			if !strings.Contains(rendered.Manifest, want) {
				t.Errorf("%s is not in\n%s", want, rendered.Manifest)
			}
		}
	})
	t.Run("a pulled chart passes the linter [O63]", func(t *testing.T) {
		if found, err := helm.RunLint(pulled, ""); err != nil || len(found) > 0 {
			t.Errorf("%v, %q", err, found)
		}
	})
	t.Run("the registry has the commit and the source of a chart [O70]", func(t *testing.T) {
		manifest, _ := getPublished(t, p)
		for key, want := range map[string]string{"revision": commit, "source": "https://github.com/deployerkit/deployerkit", "version": "0.2.0"} {
			if got := manifest.Annotations["org.opencontainers.image."+key]; got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	})
	t.Run("two packages of a commit are equal, also in a registry [O65]", func(t *testing.T) {
		again := *p
		again.dir = t.TempDir()
		_, before := getPublished(t, p)
		check(t, again.push("manifest", chart.NewManifestChart))
		if _, after := getPublished(t, &again); after != before {
			t.Errorf("%s is not %s", after, before)
		}
	})
	t.Run("a version without v is rejected", func(t *testing.T) {
		other := *p
		other.version = "0.2.0"
		if err := other.push("manifest", chart.NewManifestChart); err == nil || !strings.Contains(err.Error(), "does not begin with v") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a version that is not a semantic version is rejected", func(t *testing.T) {
		other := *p
		other.version = "vx"
		if err := other.push("manifest", chart.NewManifestChart); err == nil {
			t.Error("there is no error")
		}
	})
}

// getPublished returns the manifest of the pushed chart and the digest of the manifest.
func getPublished(t *testing.T, p *publication) (*v1.Manifest, string) {
	t.Helper()
	ref, err := name.ParseReference(p.registry + "/charts/manifest-deployer:0.2.0")
	check(t, err)
	described, err := remote.Get(ref)
	check(t, err)
	manifest, err := v1.ParseManifest(bytes.NewReader(described.Manifest))
	check(t, err)
	return manifest, described.Digest.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	check(t, err)
	return content
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
