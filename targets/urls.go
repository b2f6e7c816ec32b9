// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/deployerkit/deployerkit/targets/internal/netguard"
)

// privateServer is the reason in the ConfigError for a server that only the deployer can reach. fieldServer is the
// field in this error if the address is detected only when a connection is made.
const (
	fieldServer   = "server"
	privateServer = "is an address that only the deployer can reach (loopback, link-local, metadata or in-cluster), which the operator did not allow (AllowPrivateHosts, flag --allow-private-hosts)"
)

// isServer returns an error if the value is not a valid URL of an API server, or if the policy does not allow the URL.
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

// location parses a URL. It returns an error if the URL contains anything except scheme, host, port and path.
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

// isPort reports whether the port of u is valid or absent.
func isPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0 && len(u.Port()) <= len("65535")
}

// checkHost returns an error if the name of the host shows that only the deployer can reach it. The addresses to which
// a name resolves are checked when a connection is made.
func checkHost(path string, u *url.URL, p Policy) error {
	if !p.AllowPrivateHosts && netguard.IsPrivateHost(u.Hostname()) {
		return fault(path, privateServer)
	}
	return nil
}
