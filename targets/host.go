// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Fields of ConfigErrors that are found when a connection is made.
const (
	fieldServer   = "server"
	privateServer = "is an address that only the deployer can reach (loopback, link-local, metadata or in-cluster), which the operator did not allow (AllowPrivateHosts, flag --allow-private-hosts)"
)

// metadataServers of cloud providers that are not link-local, and what stands around them.
var metadataServers = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),          // Amazon
	netip.MustParsePrefix("fd20:ce::254/128"),       // Google
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // Oracle
	netip.MustParsePrefix("192.0.0.192/32"),         // Oracle, too
	netip.MustParsePrefix("100.100.100.200/32"),     // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),       // Azure
}

// tunnels are the prefixes of addresses that lead to an IPv4 address in a way that only the network knows: NAT64 with a
// local prefix, 6to4 and Teredo.
var tunnels = []netip.Prefix{netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32")}

// nat64 are the prefixes that wrap an IPv4 address into the last four bytes of an IPv6 address.
var nat64 = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96")}

// isServer checks the URL of an API server.
func isServer(path string, value any, p Policy) error {
	u, err := location(path, value)
	if err != nil {
		return err
	}
	switch {
	case u.Scheme == "http" && !p.AllowHTTP:
		return fault(path, "http is not allowed by the operator: credentials would be sent in clear text")
	case u.Scheme != "https" && u.Scheme != "http":
		return fault(path, "does not start with https://")
	}
	return checkHost(path, u, p)
}

func isProxy(path string, value any, p Policy) error {
	u, err := location(path, value)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return fault(path, "starts with neither http://, https:// nor socks5://")
	}
	return checkHost(path, u, p)
}

// location is a URL of nothing but scheme, host, port and path.
func location(path string, value any) (*url.URL, error) {
	s, _ := value.(string)
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, fault(path, "is not a URL with scheme and host")
	case u.User != nil:
		return nil, fault(path, "contains credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fault(path, "has a query or a fragment")
	case !isPort(u):
		return nil, fault(path, "has a port that is not a number from 1 to 65535")
	}
	return u, nil
}

// isPort reports whether the port of u can be used. A URL without one can.
func isPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0 && len(u.Port()) <= len("65535")
}

// checkHost refuses private hosts by their spelling; what a name resolves to is for the dialer to check.
func checkHost(path string, u *url.URL, p Policy) error {
	if p.AllowPrivateHosts {
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, err := netip.ParseAddr(host)
	if isPrivateName(host) || err == nil && newGuard(p, false).refuses(addr) {
		return fault(path, privateServer)
	}
	return nil
}

func isPrivateName(host string) bool {
	switch host {
	case "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", strings.ToLower(os.Getenv("KUBERNETES_SERVICE_HOST")):
		return true
	}
	return strings.HasSuffix(host, ".localhost") || strings.HasPrefix(host, "kubernetes.default.svc.")
}

// guard makes connections, to allowed addresses only. It looks at the address after the name was resolved, so that
// DNS cannot get around it.
type guard struct {
	all       bool
	inCluster netip.Addr // of the deployer's own API server; the zero value equals no address
}

func newGuard(p Policy, ours bool) *guard {
	g := &guard{all: p.AllowPrivateHosts || ours}
	if addr, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST")); err == nil {
		g.inCluster = addr.Unmap()
	}
	return g
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, ControlContext: g.control}
	return d.DialContext(ctx, network, address)
}

// control is called for each address before a connection to it is made.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if g.all {
		return nil
	}
	addr, err := netip.ParseAddrPort(address)
	if err != nil || g.refuses(addr.Addr()) {
		return fault(fieldServer, privateServer)
	}
	return nil
}

func (g *guard) refuses(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	for _, prefix := range nat64 {
		if b := addr.As16(); addr.Is6() && prefix.Contains(addr) {
			addr = netip.AddrFrom4([4]byte(b[12:]))
		}
	}
	return addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() ||
		addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || addr.Is4() && addr.As4()[0] == 0 ||
		isIn(metadataServers, addr) || isIn(tunnels, addr) || addr == g.inCluster
}

func isIn(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
