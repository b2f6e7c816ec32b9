// SPDX-License-Identifier: Apache-2.0

package targets

// Policy lists the features of Targets that an operator allows in addition to the strict default. It must come from the
// deployer's flags, because the authors of Targets must not be able to change it. The zero value is the strictest
// policy. Some features are rejected under every policy: programs (exec), authentication plugins (auth-provider), files
// of the deployer, impersonation, user names with passwords, and redirects.
type Policy struct {
	// AllowInsecureTLS allows the field insecure-skip-tls-verify. If a Target sets this field, anyone on the network
	// path to its server can read and change the traffic, including the credentials.
	AllowInsecureTLS bool
	// AllowHTTP allows servers without TLS. Credentials for such a server are sent in clear text.
	AllowHTTP bool
	// AllowProxy allows the field proxy-url (http, https or socks5, without credentials). The proxy resolves host names
	// itself, so the deployer can check only the name of a host behind the proxy, not its address. The proxy in the
	// deployer's own environment (HTTPS_PROXY) is used without this option, because the operator sets it.
	AllowProxy bool
	// AllowPrivateHosts allows servers that can be reached only from where the deployer runs: loopback, unspecified,
	// multicast and link-local addresses, the metadata services of cloud providers, and the API server of the
	// deployer's own cluster. Without this option, the deployer checks the host in the Target. For every connection, it
	// also checks the address to which the host resolves. Ordinary private networks (10.0.0.0/8 and the like) are
	// always allowed, because many clusters are in such networks.
	AllowPrivateHosts bool
	// AllowForeignSecrets allows the old form {"kubeconfig": {"secretRef": …}} to name a secret outside of the Target's
	// namespace. A user who may create a Target can then use, but not read, every kubeconfig in the secrets of the
	// Landscaper cluster.
	AllowForeignSecrets bool
	// EnableOIDC allows Targets with oidcConfig. The deployer then creates tokens for the service accounts that Targets
	// name, and sends them to the servers that Targets name. The deployer needs the permission to create
	// serviceaccounts/token, and also tokenreviews unless LandscaperAudiences is set.
	EnableOIDC bool
	// EnableSelf allows Targets with selfConfig. Such a Target refers to the Landscaper cluster itself, with a service
	// account in the namespace of the Target. The deployer needs the permission to create serviceaccounts/token.
	EnableSelf bool
	// LandscaperAudiences are the audiences that the Landscaper's API server accepts (its flag --api-audiences, by
	// default its issuer). An oidcConfig that requests one of these audiences is rejected. If the list is empty, the
	// deployer asks the Landscaper's API server to review each new token, and uses the token only if that server does
	// not accept it.
	LandscaperAudiences []string
}
