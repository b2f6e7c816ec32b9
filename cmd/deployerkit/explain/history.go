// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/history"
)

// historyFlags holds the flags for the address of the deployer's history. There is no default, because the token of the
// user is sent there.
type historyFlags struct {
	address  string
	ca       string
	insecure bool
	pod      string
}

func (f *historyFlags) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&f.pod, "history-pod", "", "NAMESPACE/NAME[:PORT] of the pod of the deployer, whose history is read through the API server; your token is sent there")
	fs.StringVar(&f.address, "history-address", "", "HOST:PORT where the deployer serves its history; your token is sent there")
	fs.StringVar(&f.ca, "history-ca", "", "file with the certificate that the deployer's one is signed by")
	fs.BoolVar(&f.insecure, "history-insecure", false, "do not verify the certificate of the deployer; for ports that you forwarded yourself")
}

// validate returns an error for flags that exclude each other.
func (f *historyFlags) validate() error {
	switch {
	case f.pod != "" && f.address != "":
		return errors.New("--history-pod, --history-address: want one of them")
	case f.ca != "" && f.insecure:
		return errors.New("--history-ca, --history-insecure: want one of them")
	case f.address != "" && f.ca == "" && !f.insecure:
		return errors.New("--history-address needs --history-ca or --history-insecure")
	}
	return nil
}

// source reads the history of an item. ls is the access to the cluster of the deploy items, host that to the deployer's pod.
type source func(ctx context.Context, item types.NamespacedName) ([]history.Reconcile, error)

// source returns a function that reads histories, or nil if no flag requests it.
func (f *historyFlags) source(ls, host *rest.Config) (source, error) {
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
