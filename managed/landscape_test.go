// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// fakeKubeSystem is a cluster whose namespace kube-system may or may not be readable.
type fakeKubeSystem struct {
	client.Reader

	err   error
	reads int
}

func (k *fakeKubeSystem) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k.reads++
	if ns, ok := obj.(*corev1.Namespace); ok {
		ns.UID = "9c02"
	}
	return k.err
}

func newConfig(host, authority string) func() *rest.Config {
	return func() *rest.Config {
		return &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(authority)}}
	}
}

func TestLandscapeIdentity(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", errors.New("no"))
	identify := func(err error, config func() *rest.Config) (ownership.Owner, int) {
		t.Helper()
		reader := &fakeKubeSystem{err: err}
		l := &landscape{reader: reader, config: config}
		owner := ownership.Owner{Namespace: "ns", Name: "n"}
		for range 3 {
			var err error
			if owner.Landscape, owner.LandscapeAlias, err = l.getUIDs(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return owner, reader.reads
	}
	with, reads := identify(nil, newConfig("https://a", "ca"))
	without, refused := identify(forbidden, newConfig("https://a", "ca"))
	t.Run("is read once, with and without the right [F58]", func(t *testing.T) {
		if with.Landscape != "9c02" || !strings.HasPrefix(string(without.Landscape), "server-") || reads != 1 || refused != 1 {
			t.Errorf("got %+v after %d reads and %+v after %d", with, reads, without, refused)
		}
	})
	t.Run("stays the same after a restart [F58]", func(t *testing.T) {
		if again, _ := identify(forbidden, newConfig("https://a", "ca\n")); again != without {
			t.Errorf("got %+v and %+v", without, again)
		}
	})
	t.Run("the identity stays the same when the permission to read kube-system is granted later [F58]", func(t *testing.T) {
		if !with.IsSameItem(without) || !without.IsSameItem(with) {
			t.Errorf("%+v and %+v must be the same item", with, without)
		}
	})
	t.Run("identities of different clusters differ without the permission to read kube-system [F58]", func(t *testing.T) {
		seen := map[types.UID]bool{without.Landscape: true}
		for _, config := range []func() *rest.Config{newConfig("https://b", "ca"), newConfig("https://a", "other"), newConfig("https://a", "")} {
			other, _ := identify(forbidden, config)
			if seen[other.Landscape] || other.IsSameItem(without) || other.IsSameItem(with) {
				t.Errorf("%+v must be another cluster", other)
			}
			seen[other.Landscape] = true
		}
	})
	t.Run("reads the authority of a pod from its file [F58]", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ca.crt")
		if err := os.WriteFile(file, []byte("ca"), 0o600); err != nil {
			t.Fatal(err)
		}
		inPod := func() *rest.Config {
			return &rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: file}}
		}
		if got, _ := identify(forbidden, inPod); got != without {
			t.Errorf("got %+v, want %+v", got, without)
		}
		missing := &landscape{reader: &fakeKubeSystem{}, config: func() *rest.Config {
			return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: file + "-missing"}}
		}}
		if _, _, err := missing.getUIDs(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the identity is an error if the API server does not respond [F58]", func(t *testing.T) {
		l := &landscape{reader: &fakeKubeSystem{err: errors.New("timeout")}, config: newConfig("https://a", "ca")}
		if _, _, err := l.getUIDs(t.Context()); err == nil {
			t.Error("an outage must not change the identity")
		}
	})
}
