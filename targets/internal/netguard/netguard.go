// SPDX-License-Identifier: Apache-2.0

// Package netguard blocks connections to addresses that only the deployer can reach: loopback, link-local and metadata
// addresses, and the API server of its own cluster.
package netguard

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// metadataServers contains the addresses of the metadata services of cloud providers. It omits link-local addresses,
// because the guard refuses all of them. For Amazon, it contains a range of addresses that includes the service.
var metadataServers = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),          // Amazon
	netip.MustParsePrefix("fd20:ce::254/128"),       // Google
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // Oracle
	netip.MustParsePrefix("192.0.0.192/32"),         // Oracle, too
	netip.MustParsePrefix("100.100.100.200/32"),     // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),       // Azure
}

// tunnels contains the prefixes of IPv6 addresses that the network may translate to IPv4 addresses: NAT64 with a local
// prefix, 6to4 and Teredo.
var tunnels = []netip.Prefix{netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32")}

// nat64 contains the prefixes of IPv6 addresses that end with an IPv4 address.
var nat64 = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96")}

// IsPrivateHost reports whether the host of a URL is one that only the deployer can reach. It does not resolve names.
// Dial checks the resolved addresses.
func IsPrivateHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, err := netip.ParseAddr(host)
	return isPrivateName(host) || err == nil && newGuard(nil).isRefused(addr)
}

func isPrivateName(host string) bool {
	switch host {
	case "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", strings.ToLower(os.Getenv("KUBERNETES_SERVICE_HOST")):
		return true
	}
	return strings.HasSuffix(host, ".localhost") || strings.HasPrefix(host, "kubernetes.default.svc.")
}

// Dial returns a dial function. If an address can be reached only by the deployer, the function does not connect and
// returns the error `refused`. It checks the resolved addresses, so that DNS cannot be used to circumvent the check.
func Dial(refused error) func(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer(newGuard(refused).checkAddress)
}

// DialAny returns a dial function that connects to all addresses.
func DialAny() func(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer(nil)
}

func newDialer(control func(context.Context, string, string, syscall.RawConn) error) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, ControlContext: control}
	return d.DialContext
}

type guard struct {
	refused   error
	inCluster netip.Addr // address of the deployer's own API server; the zero value matches no address
}

func newGuard(refused error) *guard {
	g := &guard{refused: refused}
	if addr, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST")); err == nil {
		g.inCluster = addr.Unmap()
	}
	return g
}

// checkAddress is called for each address before a connection is made.
func (g *guard) checkAddress(_ context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || g.isRefused(addr.Addr()) {
		return g.refused
	}
	return nil
}

func (g *guard) isRefused(addr netip.Addr) bool {
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
