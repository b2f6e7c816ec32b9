// SPDX-License-Identifier: Apache-2.0

package targets

// Policy is what an operator allows beyond the strict default. It belongs to the deployer's flags: the
// authors of Targets must not be able to change it. The zero value is the strictest. What no option names is
// refused always: programs (exec), authentication plugins (auth-provider), files of the deployer,
// impersonation, user names with passwords, and redirects.
type Policy struct {
	// AllowInsecureTLS accepts insecure-skip-tls-verify, so that anybody on the way may read and change
	// everything, the credentials included.
	AllowInsecureTLS bool
	// AllowHTTP accepts servers without TLS; the credentials are then sent in clear text.
	AllowHTTP bool
	// AllowProxy accepts proxy-url (http, https or socks5, without credentials). A proxy resolves names itself,
	// so that for what is behind it only the spelling of the host is checked. The proxy of the deployer's own
	// environment (HTTPS_PROXY) is the operator's and is used without this option.
	AllowProxy bool
	// AllowPrivateHosts accepts servers that are reachable only from where the deployer runs: loopback,
	// unspecified, multicast and link-local addresses, the metadata services of cloud providers, and the API
	// server of the deployer's own cluster. Without it both the name in the Target and the addresses that it
	// resolves to are checked, the latter each time a connection is made. Ordinary private networks
	// (10.0.0.0/8 and the like) are always allowed: that is where clusters are.
	AllowPrivateHosts bool
	// AllowForeignSecrets lets the old form {"kubeconfig": {"secretRef": …}} name a secret outside the Target's
	// namespace. A user who may create a Target may then use, though not read, every kubeconfig of the cluster.
	AllowForeignSecrets bool
	// EnableOIDC accepts Targets with oidcConfig. The deployer then creates tokens for the service accounts
	// that Targets name and sends them to the servers that Targets name; it needs the right to create
	// serviceaccounts/token, and tokenreviews unless LandscaperAudiences is set.
	EnableOIDC bool
	// EnableSelf accepts Targets with selfConfig: the Landscaper's own cluster, as a service account of the
	// Target's namespace. Needs the right to create serviceaccounts/token.
	EnableSelf bool
	// LandscaperAudiences are the audiences that the Landscaper's API server accepts (its flag
	// --api-audiences, by default its issuer). An oidcConfig that asks for one of them is refused. Empty: each
	// new token is shown to the Landscaper's API server first, and used only if that does not accept it.
	LandscaperAudiences []string
}
