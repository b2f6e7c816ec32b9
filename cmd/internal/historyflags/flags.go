// SPDX-License-Identifier: Apache-2.0

// Package historyflags provides the flags that select the server of a deployer's history.
package historyflags

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/history"
)

// Flags contains the flags that select the server of the deployer's history. There is no default, because the
// command sends the token of the user to the server.
type Flags struct {
	address  string
	ca       string
	insecure bool
	pod      string
}

// AddTo registers the flags.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	fs.StringVar(&f.pod, "history-pod", "", "pod of the deployer, as NAMESPACE/NAME[:PORT]; the command reads the history from this pod through the API server, and sends your token to the pod")
	fs.StringVar(&f.address, "history-address", "", "address at which the deployer serves its history, as HOST:PORT; the command sends your token to this address")
	fs.StringVar(&f.ca, "history-ca", "", "file with the certificate of the CA that signed the certificate of the deployer")
	fs.BoolVar(&f.insecure, "history-insecure", false, "do not verify the certificate of the deployer; use this only for ports that you forwarded yourself")
}

// validate returns an error for flags that cannot be combined.
func (f *Flags) validate() error {
	switch {
	case f.pod != "" && f.address != "":
		return errors.New("--history-pod, --history-address: set only one of them")
	case f.ca != "" && f.insecure:
		return errors.New("--history-ca, --history-insecure: set only one of them")
	case f.address != "" && f.ca == "" && !f.insecure:
		return errors.New("--history-address needs --history-ca or --history-insecure")
	}
	return nil
}

// Source is a function that returns the history of an item.
type Source func(ctx context.Context, item types.NamespacedName) ([]history.Reconcile, error)

// NewSource returns a function that reads the history of an item. It returns nil if the user set none of the flags. The
// function reaches the cluster of the deploy items through ls, and the cluster with the deployer's pod through host.
func (f *Flags) NewSource(ls, host *rest.Config) (Source, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	var ca []byte
	if f.ca != "" {
		var err error
		if ca, err = os.ReadFile(f.ca); err != nil {
			return nil, err
		}
	}
	switch {
	case f.address != "":
		return func(ctx context.Context, item types.NamespacedName) ([]history.Reconcile, error) {
			return read(ctx, ls, f.address, ca, item)
		}, nil
	case f.pod != "":
		namespace, pod, port, err := podOf(f.pod)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, item types.NamespacedName) ([]history.Reconcile, error) {
			address, stop, err := forward(ctx, host, namespace, pod, port)
			if err != nil {
				return nil, err
			}
			defer stop()
			return read(ctx, ls, address, ca, item)
		}, nil
	}
	return nil, nil
}

func read(ctx context.Context, ls *rest.Config, address string, ca []byte, item types.NamespacedName) ([]history.Reconcile, error) {
	c, err := history.NewClient(ls, address, ca)
	if err != nil {
		return nil, err
	}
	list, err := c.Get(ctx, item)
	return list.Reconciles, err
}
