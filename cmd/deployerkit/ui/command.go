// SPDX-License-Identifier: Apache-2.0

// Package ui implements `deployerkit ui`. The command serves a web page that shows Installations and deploy items.
package ui

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/cmd/deployerkit/tree"
	"github.com/deployerkit/deployerkit/cmd/internal/clientflags"
	"github.com/deployerkit/deployerkit/cmd/internal/historyflags"
	"github.com/deployerkit/deployerkit/cmd/internal/manifestflags"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/internal/ui"
)

// DefaultAddress is the default address of the page.
const DefaultAddress = "127.0.0.1:7070"

const long = `Serve a web page that shows the Installations, Executions and deploy items of a cluster, why each deploy item is in its state,
and what happens next. The page follows the cluster.

The page changes nothing and uses your own rights: everybody who can open the page sees what you may see. It is served at a
loopback address, which only users of this computer can reach. At any other address (--address), the page requires a token,
which the command prints.`

const example = `  deployerkit ui
  deployerkit ui -n shop --history-pod ls-system/manifest-deployer-0
  deployerkit ui --address 0.0.0.0:7070 --tls-cert tls.crt --tls-key tls.key --host-name page.example.org`

// options contains the values of the flags.
type options struct {
	clientflags.Flags

	address         string
	hostNames       []string
	tlsCert, tlsKey string
	history         historyflags.Flags
	manifest        manifest.Options
}

// NewCommand returns the command `ui`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "ui", Short: "Serve a web page that shows Installations and deploy items, and explains them",
		Long: long, Example: example, Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	fs := cmd.Flags()
	o.AddTo(fs)
	fs.StringVar(&o.address, "address", DefaultAddress, "address of the page, as HOST:PORT; an address that is not a loopback address requires a token")
	fs.StringSliceVar(&o.hostNames, "host-name", nil, "name under which browsers may open the page, besides localhost and IP addresses; may be repeated")
	fs.StringVar(&o.tlsCert, "tls-cert", "", "file with the certificate of the page; with --tls-key, the page is served over TLS")
	fs.StringVar(&o.tlsKey, "tls-key", "", "file with the key of the certificate")
	o.history.AddTo(fs)
	manifestflags.Add(fs, &o.manifest)
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	if err := o.manifest.Validate(); err != nil {
		return err
	}
	cfg, namespace, err := o.Config()
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("namespace") {
		namespace = ""
	}
	host := cfg
	if other, err := o.ConfigForHost(); err != nil {
		return err
	} else if other != nil {
		host = other
	}
	source, err := o.history.NewSource(cfg, host)
	if err != nil {
		return err
	}
	page, stop, err := Listen(Options{
		Page:    ui.Options{Config: cfg, Host: host, Namespace: namespace, History: source, HostNames: o.hostNames},
		Address: o.address, TLSCert: o.tlsCert, TLSKey: o.tlsKey, Manifest: o.manifest,
	})
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(cmd.OutOrStdout(), "ui: open %s (Ctrl-C ends the page)\n", page.URL)
	page.warn(cmd.ErrOrStderr())
	return page.Serve(cmd.Context())
}

// Options configures Listen.
type Options struct {
	// Page configures the server. Listen sets the functions Open and Plan, and the token.
	Page ui.Options
	// Address is the address of the page, as HOST:PORT.
	Address string
	// TLSCert and TLSKey are the files with the certificate of the page and its key. If they are empty, the page is served without TLS.
	TLSCert, TLSKey string
	// Manifest configures how the page plans items, and which Targets it opens.
	Manifest manifest.Options
}

// Page is a page whose address is in use, but which is not served yet.
type Page struct {
	// URL is what a user opens. It contains the token, if there is one.
	URL string

	server   *ui.Server
	listener net.Listener
	plain    bool // the token is sent without TLS
}

// Listen prepares a page and listens on its address. The caller must call stop after Serve has returned.
func Listen(o Options) (page *Page, stop func(), err error) {
	c, err := clientflags.NewClient(readOnly(o.Page.Config))
	if err != nil {
		return nil, nil, err
	}
	cfg, options := o.Page.Config, o.Manifest
	o.Page.Plan = func(ctx context.Context, key types.NamespacedName) (apply.Plan, error) {
		return plan.Stored(ctx, cfg, key, options, ui.NewReadOnly)
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("--address: %w", err)
	}
	address := listener.Addr().String()
	page = &Page{listener: listener}
	target := url.URL{Scheme: "http", Host: address, Path: "/"}
	if o.TLSCert != "" || o.TLSKey != "" {
		pair, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("--tls-cert, --tls-key: %w", err), listener.Close())
		}
		page.listener, target.Scheme = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), "https"
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		o.Page.Token = rand.Text()
		target.RawQuery = url.Values{"token": {o.Page.Token}}.Encode()
		page.plain = target.Scheme == "http"
	}
	page.URL = target.String()
	open, done := tree.NewClientFactory(readOnly(cfg), c, options.Targets, ui.NewReadOnly)
	o.Page.Open = open
	if page.server, err = ui.NewServer(o.Page); err != nil {
		done()
		return nil, nil, errors.Join(err, listener.Close())
	}
	return page, done, nil
}

// readOnly returns a copy of a config whose clients cannot write.
func readOnly(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(ui.NewReadOnly)
	return out
}

// Serve serves the page until ctx is done.
func (p *Page) Serve(ctx context.Context) error { return p.server.Serve(ctx, p.listener) }

// warn prints a warning if the token can be read on the network.
func (p *Page) warn(w io.Writer) {
	if p.plain {
		fmt.Fprintln(w, "ui: the page is served without TLS, so that others on the network can read it and its token; set --tls-cert and --tls-key")
	}
}
