// SPDX-License-Identifier: Apache-2.0

package targets

// Policy is what an operator allows in addition to the strict default. It must come from the deployer's flags, because
// the authors of Targets must not be able to change it. The zero value is the strictest policy. Features without an
// option are always rejected: programs (exec), authentication plugins (auth-provider), files of the deployer,
// impersonation, user names with passwords, and redirects.
type Policy struct {
	// AllowInsecureTLS accepts insecure-skip-tls-verify. Anyone on the network path can then read and change the
	// traffic, including the credentials.
	AllowInsecureTLS bool
	// AllowHTTP accepts servers without TLS. The credentials are then sent in clear text.
	AllowHTTP bool
	// AllowProxy accepts proxy-url (http, https or socks5, without credentials). The proxy resolves names itself, so
	// hosts behind it are checked only by their name. The proxy of the deployer's own environment (HTTPS_PROXY) belongs
	// to the operator and is used without this option.
	AllowProxy bool
	// AllowPrivateHosts accepts servers that can be reached only from where the deployer runs: loopback, unspecified,
	// multicast and link-local addresses, the metadata services of cloud providers, and the API server of the
	// deployer's own cluster. Without it, both the name in the Target and the addresses that it resolves to are
	// checked, the latter for every connection. Ordinary private networks (10.0.0.0/8 and the like) are always allowed,
	// because clusters are there.
	AllowPrivateHosts bool
	// AllowForeignSecrets allows the old form {"kubeconfig": {"secretRef": …}} to name a secret outside of the Target's
	// namespace. A user who may create a Target can then use, but not read, every kubeconfig of the cluster.
	AllowForeignSecrets bool
	// EnableOIDC accepts Targets with oidcConfig. The deployer then creates tokens for the service accounts that
	// Targets name, and sends them to the servers that Targets name. It needs the right to create
	// serviceaccounts/token, and also tokenreviews unless LandscaperAudiences is set.
	EnableOIDC bool
	// EnableSelf accepts Targets with selfConfig, which refer to the Landscaper's own cluster with a service account of
	// the Target's namespace. It needs the right to create serviceaccounts/token.
	EnableSelf bool
	// LandscaperAudiences are the audiences that the Landscaper's API server accepts (its flag --api-audiences, by
	// default its issuer). An oidcConfig that requests one of them is rejected. If the list is empty, each new token is
	// reviewed by the Landscaper's API server, and used only if that server does not accept it.
	LandscaperAudiences []string
}
