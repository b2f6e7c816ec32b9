// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gardener/landscaper/apis/config"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Options contains the settings of the Sources that New returns.
type Options struct {
	// OCI is the field oci of the deployer's configuration file. Its fields allowPlainHttp and insecureSkipVerify take
	// effect for the hosts in its docker configuration files (configFiles) only. OCI may be nil.
	OCI *config.OCIConfiguration
	// Hosts contains the settings for particular hosts.
	Hosts []Host
	// AllowPrivateAddresses allows connections to loopback, link-local and private addresses of all hosts.
	AllowPrivateAddresses bool
	// Limits restrict the archives. The zero value selects the defaults.
	Limits Limits
	// CacheBytes is the maximum size of all archives in the cache. The default is 64 MiB. A negative value disables the
	// cache.
	CacheBytes int64
	// ResolveTimeout limits each call of Resolve. The default is 30 s.
	ResolveTimeout time.Duration
	// FetchTimeout limits each call of Fetch. The default is 2 min.
	FetchTimeout time.Duration
	// Resolver fetches charts that are resources of components (field resourceRef) if the component is not in an OCI
	// registry, or if the access of the resource is not supported. It may be nil.
	Resolver Source
	// Observe is called for each archive that is taken from the cache or downloaded, and from several goroutines at
	// once. It may be nil.
	Observe func(Event)
	// Clock is the clock for the detection of slow hosts. The default is the real clock.
	Clock clock.PassiveClock
}

// Host contains the settings for a host from which charts are downloaded.
type Host struct {
	// Name is the name of the host, followed by a colon and the port unless it is the default port.
	Name string
	// PlainHTTP allows connections without TLS. Registries on this host are accessed without TLS.
	PlainHTTP bool
	// InsecureSkipVerify disables the verification of the host's certificate.
	InsecureSkipVerify bool
	// AllowPrivateAddress allows loopback, link-local and private addresses.
	AllowPrivateAddress bool
	// CAData contains certificates in PEM format, which are trusted in addition to those of the system.
	CAData []byte
}

// Event describes where an archive comes from.
type Event string

// The events that Options.Observe receives.
const (
	CacheHit Event = "cache_hit"
	Download Event = "download"
)

// New returns Sources for all kinds of charts. They share a cache, and limit the time and the size of all downloads. New
// returns an error if the options are invalid or a docker configuration file cannot be read.
func New(o Options) (Sources, error) {
	o.Limits = o.Limits.Default()
	o.CacheBytes = cmp.Or(o.CacheBytes, 64<<20)
	o.ResolveTimeout, o.FetchTimeout = cmp.Or(o.ResolveTimeout, 30*time.Second), cmp.Or(o.FetchTimeout, 2*time.Minute)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := &fetcher{
		options: o, hosts: map[string]Host{}, gate: gate{clock: o.Clock, pending: map[string]map[*int]time.Time{}},
		cache: &cache{limit: o.CacheBytes, observe: o.Observe}, clients: lru.New(1000), manifests: lru.New(10_000), versions: lru.New(10_000),
	}
	f.transports = lru.NewWithEvictionFunc(64, func(_ lru.Key, v any) { v.(*http.Transport).CloseIdleConnections() })
	if err := f.addHosts(); err != nil {
		return Sources{}, err
	}
	return Sources{
		Inline:     Inline(),
		Remote:     &source{f, f.resolveRemote},
		OCI:        &source{f, f.resolveRef},
		Repository: &source{f, f.resolveRepository},
		Resource:   &resourceSource{source{f, f.resolveResource}},
	}, nil
}

// fetcher downloads charts for all sources.
type fetcher struct {
	options    Options
	hosts      map[string]Host
	gate       gate
	locks      locks
	cache      *cache
	transport  sync.Mutex // guards the creation of transports
	transports *lru.Cache // transportKey → *http.Transport
	clients    *lru.Cache // clientKey → *remote.Repository
	manifests  *lru.Cache // manifestKey → *artifact
	versions   *lru.Cache // versionKey → *version
}

// addHosts validates and stores the settings of hosts.
func (f *fetcher) addHosts() error {
	for i, host := range f.options.Hosts {
		name := hostName(host.Name)
		if u, err := url.Parse("https://" + name); err != nil || u.Host != name || u.Hostname() == "" {
			return fmt.Errorf("hosts[%d]: %q is not a host", i, host.Name)
		}
		if len(host.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(host.CAData) {
			return fmt.Errorf("hosts[%d]: the CA data for %s contains no certificate in PEM format", i, name)
		}
		f.hosts[name] = host
	}
	oci := f.options.OCI
	if oci == nil {
		return nil
	}
	listed, err := f.operatorCredentials()
	if err != nil {
		return err
	}
	if len(listed) == 0 && (oci.AllowPlainHttp || oci.InsecureSkipVerify) {
		return errors.New("oci: allowPlainHttp and insecureSkipVerify apply only to the hosts in the files of oci.configFiles, which contain none")
	}
	for _, entry := range listed {
		host := f.hosts[entry.host]
		host.Name = entry.host
		host.PlainHTTP = host.PlainHTTP || oci.AllowPlainHttp
		host.InsecureSkipVerify = host.InsecureSkipVerify || oci.InsecureSkipVerify
		f.hosts[entry.host] = host
	}
	return nil
}

// hostName returns the canonical form of a host with an optional port.
func hostName(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	switch host {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	}
	return host
}
