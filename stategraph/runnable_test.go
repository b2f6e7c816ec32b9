// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestSharedChannelsAreRegisteredOnce(t *testing.T) {
	a, b := make(chan types.NamespacedName), make(chan types.NamespacedName)
	listening := func(listeners ...Listener) Resource {
		return External(ExternalSpec{Reconcile: func(context.Context) error { return nil }, Listeners: listeners})
	}
	g, err := NewBuilder().Add("one", listening(Channel(a))).Add("two", listening(Channel(b), Channel(a))).Add("three", listening()).Build()
	if err != nil {
		t.Fatal(err)
	}
	got := g.listChannels()
	if len(got) != 2 || got[0] != (<-chan types.NamespacedName)(a) || got[1] != (<-chan types.NamespacedName)(b) {
		t.Errorf("want each channel once, in order, have %v", got)
	}
}

func TestNewWithoutGraph(t *testing.T) {
	d, ok := New(nil, Options{}).(*deployer)
	if !ok {
		t.Fatal("New returns another type")
	}
	if err := d.UseRuntime(d.manager.GetRuntime()); err == nil {
		t.Error("a deployer without a graph starts")
	}
}
