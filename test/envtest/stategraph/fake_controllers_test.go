// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/controlplane"
)

// stuck contains names of namespaces. The Pods in these namespaces do not become ready. As an exception, a Pod becomes
// ready if `stuck` also contains "namespace/name" of this Pod.
var stuck = &nameSet{on: map[string]bool{}}

// nameSet is a set of names, each of which can be switched on and off.
type nameSet struct {
	mu sync.Mutex
	on map[string]bool
}

func (s *nameSet) set(name string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[name] = on
}

func (s *nameSet) is(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[name]
}

// startKubelet marks all Pods as running and ready, because the control plane has no nodes. It skips the Pods that the
// variable `stuck` excludes.
func startKubelet(ctx context.Context) (stop func() error) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlplane.AddKubelet(mgr, func(pod *corev1.Pod) bool {
		return !stuck.is(pod.Namespace) || stuck.is(pod.Namespace+"/"+pod.Name)
	})).To(Succeed())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error { cancel(); return <-done }
}
