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

// validateServer returns an error if the value is not a valid URL of an API server, or if the policy does not allow the
// URL.
func validateServer(path string, value any, p Policy) error {
	u, err := parseURL(path, value)
	if err != nil {
		return err
	}
	switch {
	case u.Scheme == "http" && !p.AllowHTTP:
		return newConfigError(path, "http is not allowed by the operator: credentials would be sent in clear text")
	case u.Scheme != "https" && u.Scheme != "http":
		return newConfigError(path, "does not start with https://")
	}
	return checkHost(path, u, p)
}

func validateProxy(path string, value any, p Policy) error {
	u, err := parseURL(path, value)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return newConfigError(path, "starts with neither http://, https:// nor socks5://")
	}
	return checkHost(path, u, p)
}

// parseURL parses a URL. It returns an error if the URL contains anything except scheme, host, port and path.
func parseURL(path string, value any) (*url.URL, error) {
	s, _ := value.(string)
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, newConfigError(path, "is not a URL with scheme and host")
	case u.User != nil:
		return nil, newConfigError(path, "contains credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, newConfigError(path, "has a query or a fragment")
	case !hasValidPort(u):
		return nil, newConfigError(path, "has a port that is not a number from 1 to 65535")
	}
	return u, nil
}

// hasValidPort reports whether the port of u is valid or absent.
func hasValidPort(u *url.URL) bool {
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
		return newConfigError(path, privateServer)
	}
	return nil
}
