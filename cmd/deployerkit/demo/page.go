// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	uicommand "github.com/deployerkit/deployerkit/cmd/deployerkit/ui"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/ui"
	"github.com/deployerkit/deployerkit/targets"
)

// servePage serves the web page for the control plane of the demo, at a free port of the loopback interface. It returns
// the address of the page. The caller must call stop.
func (d *demo) servePage(ctx context.Context) (address string, stop func(), err error) {
	page, closeClients, err := uicommand.Listen(uicommand.Options{
		Address: "127.0.0.1:0", Page: ui.Options{Config: d.cp.Config, History: d.getHistory},
		Manifest: manifest.Options{Targets: targets.Policy{AllowPrivateHosts: true}},
	})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = page.Serve(ctx) // the demo has shown its results; an error of the page changes nothing
	}()
	return page.URL, func() {
		cancel()
		<-ended
		closeClients()
	}, nil
}

// getHistory returns the last reconciles of an item by any of the deployers.
func (d *demo) getHistory(_ context.Context, item types.NamespacedName) ([]history.Reconcile, error) {
	for _, store := range d.histories {
		if list := store.Get(item); len(list) > 0 {
			return list, nil
		}
	}
	return nil, nil
}
