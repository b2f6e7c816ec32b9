// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/explain"
)

// output is a buffer that a command writes to and a test reads from.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// waitUntil polls until done reports true.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestWatchExplainsEachChange(t *testing.T) {
	for _, format := range []string{"", "yaml"} {
		t.Run("format "+format, func(t *testing.T) {
			scheme, err := deployerlib.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			key := types.NamespacedName{Namespace: "shop", Name: "web"}
			item := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: lsv1alpha1.DeployItemSpec{Type: "example.org/x"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(item).WithStatusSubresource(item).Build()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out, errOut output
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			cmd.SetErr(&errOut)
			o := &options{output: format, watch: true}
			ended := make(chan error, 1)
			go func() { ended <- o.watchItem(ctx, cmd, c, key, explain.Options{}) }()

			n := 0
			waitUntil(t, "an explanation after a change", func() bool {
				n++
				patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Progressing","observedGeneration":`+strings.Repeat("1", 1+n%9)+`}}`))
				if err := c.Status().Patch(ctx, item.DeepCopy(), patch); err != nil {
					t.Fatal(err)
				}
				return strings.Contains(out.String(), "Progressing")
			})
			if separated := strings.HasPrefix(out.String(), "---\n"); separated != (format == "yaml") {
				t.Errorf("the output begins with %.20q", out.String())
			}
			if err := c.Delete(ctx, item); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Errorf("follow: %v, want no error for an item that is gone", err)
			}
			if want := "explain: DeployItem shop/web is gone\n"; errOut.String() != want {
				t.Errorf("errors: got %q, want %q", errOut.String(), want)
			}
		})
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	scheme, err := deployerlib.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&options{}).watchItem(ctx, &cobra.Command{}, fake.NewClientBuilder().WithScheme(scheme).Build(), types.NamespacedName{Name: "web"}, explain.Options{})
	}()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("follow: %v, want no error after Ctrl-C", err)
	}
}
