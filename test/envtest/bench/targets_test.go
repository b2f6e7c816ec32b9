// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/targets"
)

// closedFor is how many seconds HTTP/2 keeps the memory of a closed connection: its health check holds the connection until
// the next check is due, which is after 30 seconds.
const closedFor = 35

// BenchmarkScaleTargets measures a pool of 1000 targets that are idle after one request each: the memory per target and
// the number of connections, without a limit that matters and with the default limit. All targets are the same API server
// with different tokens, so each has a client, a transport and a connection of its own.
func BenchmarkScaleTargets(b *testing.B) {
	const n = 1000
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, cp.Stop()) })
	klog.SetLogger(logr.Discard())
	all := newTokenTargets(b, cp, n)
	for b.Loop() {
		for unit, limit := range map[string]int{"": n, "/default": 0} {
			sockets := countSockets(b)
			heap := float64(waitForStableHeap(closedFor))
			pool := targets.NewPool(targets.PoolOptions{Policy: targets.Policy{AllowPrivateHosts: true}, MaxClients: limit})
			for _, target := range all {
				c, err := pool.Get(b.Context(), target)
				must(b, err)
				must(b, client.IgnoreNotFound(c.Get(b.Context(), types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "x"}, &corev1.ConfigMap{})))
			}
			b.ReportMetric((float64(readHeapSize())-heap)/n/1000, "KB/connected"+unit)
			b.ReportMetric(float64(countSockets(b)-sockets), "connections"+unit)
			waitUntilClosed(b, sockets) // the transports close connections that were not used for 90 seconds
			b.ReportMetric((float64(waitForStableHeap(closedFor))-heap)/n/1000, "KB/idle"+unit)
			pool.Close()
			waitUntilClosed(b, sockets)
		}
	}
	runtime.KeepAlive(all)
}

// newTokenTargets returns Targets for one API server. Each has a token of its own.
func newTokenTargets(b *testing.B, cp *controlplane.ControlPlane, n int) []*lsv1alpha1.ResolvedTarget {
	b.Helper()
	c, err := client.New(cp.Config, client.Options{})
	must(b, err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "bench-"}}
	must(b, c.Create(b.Context(), account))
	must(b, c.Create(b.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
	all := make([]*lsv1alpha1.ResolvedTarget, n)
	for i := range all {
		request := &authenticationv1.TokenRequest{}
		must(b, c.SubResource("token").Create(b.Context(), account, request))
		kubeconfig := fmt.Sprintf(`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],`+
			`"clusters":[{"name":"x","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"x","user":{"token":%q}}]}`,
			cp.Config.Host, base64.StdEncoding.EncodeToString(cp.Config.CAData), request.Status.Token)
		content, err := json.Marshal(map[string]string{"kubeconfig": kubeconfig})
		must(b, err)
		name := fmt.Sprintf("target-%d", i)
		all[i] = lsv1alpha1.NewResolvedTarget(&lsv1alpha1.Target{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name)},
			Spec:       lsv1alpha1.TargetSpec{Type: targettypes.KubernetesClusterTargetType, Configuration: lsv1alpha1.NewAnyJSONPointer(content)},
		})
	}
	return all
}

// waitUntilClosed waits until this process has at most n sockets.
func waitUntilClosed(b *testing.B, n int) {
	b.Helper()
	for deadline := time.Now().Add(3 * time.Minute); countSockets(b) > n; <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d sockets are open, %d more than before", countSockets(b), countSockets(b)-n)
		}
	}
}

// countSockets returns the number of sockets of this process.
func countSockets(b *testing.B) int {
	b.Helper()
	const dir = "/proc/self/fd/"
	files, err := os.ReadDir(dir)
	must(b, err)
	n := 0
	for _, file := range files {
		if name, err := os.Readlink(dir + file.Name()); err == nil && strings.HasPrefix(name, "socket:") {
			n++
		}
	}
	return n
}
