// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// errRefused is the error for connections to private addresses.
var errRefused = newError("", "the address is a loopback, link-local, private or metadata address, which the operator did not allow for this host")

// internal contains the addresses that are not loopback, link-local or private by their definition, but reach internal
// services: shared addresses, metadata services of cloud providers, and addresses that the network translates to IPv4
// addresses.
var internal = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// nat64 contains the prefixes of IPv6 addresses that end with an IPv4 address.
var nat64 = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96")}

// isPrivate reports whether an address may belong to an internal service.
func isPrivate(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	if addr.Is6() && !addr.IsLoopback() && slices.ContainsFunc(nat64, contains) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return !addr.IsGlobalUnicast() || addr.IsPrivate() || slices.ContainsFunc(internal, contains)
}

// dial returns a dial function. It checks the resolved addresses, so that DNS cannot be used to circumvent the check.
func dial(allowPrivate bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !allowPrivate {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if addr, err := netip.ParseAddrPort(address); err != nil || isPrivate(addr.Addr()) {
				return errRefused
			}
			return nil
		}
	}
	return d.DialContext
}
