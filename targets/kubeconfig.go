// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"

	"k8s.io/client-go/rest"
)

// These variables list the fields of a kubeconfig, level by level. Fields that are not listed here are rejected.
// Dangerous fields are listed with the reason why they are rejected. The loader of client-go is not used, because it
// runs programs, opens files, falls back to the deployer's own credentials, and quotes the document in its errors.
var (
	kubeconfigFields = fields{
		"apiVersion": one("v1"), "kind": one("Config"), "preferences": ignored, "extensions": ignored,
		"clusters": ignored, "contexts": ignored, "users": ignored, // namedEntries checks the entries of these lists
		"current-context": isText,
	}
	contextFields = fields{"cluster": isText, "user": isText, "namespace": isText, "extensions": ignored}
	clusterFields = fields{
		"server":                     isServer,
		"tls-server-name":            isText,
		"certificate-authority-data": isBase64,
		"disable-compression":        isFlag,
		"extensions":                 ignored,
		"insecure-skip-tls-verify":   optional("the identity of the server would not be verified", func(p Policy) bool { return p.AllowInsecureTLS }, isFlag),
		"proxy-url":                  optional("the target would choose the route of the traffic", func(p Policy) bool { return p.AllowProxy }, isProxy),
		"certificate-authority":      forbidden("it names a file of the deployer; use certificate-authority-data"),
	}
	userFields = fields{
		"token":                   isToken,
		"client-certificate-data": isBase64,
		"client-key-data":         isBase64,
		"extensions":              ignored,
		"exec":                    forbidden("it runs a program in the deployer"),
		"auth-provider":           forbidden("it runs an authentication plugin in the deployer"),
		"client-certificate":      forbidden("it names a file of the deployer; use client-certificate-data"),
		"client-key":              forbidden("it names a file of the deployer; use client-key-data"),
		"tokenFile":               forbidden("it names a file of the deployer; use token"),
		"as":                      forbidden("impersonation"),
		"as-uid":                  forbidden("impersonation"),
		"as-groups":               forbidden("impersonation"),
		"as-user-extra":           forbidden("impersonation"),
		"username":                forbidden("passwords are not supported; use a token or a client certificate"),
		"password":                forbidden("passwords are not supported; use a token or a client certificate"),
	}
)

// RESTConfig converts a kubeconfig (YAML or JSON) to a REST config. All fields of the kubeconfig must pass an
// allow-list, including the fields of clusters, contexts and users that the current context does not use. Clients with
// this REST config do not connect to addresses that p forbids, even if a host name resolves to such an address, and
// they do not follow redirects. They have no client-side rate limit. They do not log warnings of the server, because
// the target controls the text of its warnings.
//
// Prefer Pool, which shares one client per target and renews its credentials. RESTConfig is for programs that need a
// single client. Errors are *ConfigError and never contain content of the kubeconfig.
func RESTConfig(kubeconfig []byte, p Policy) (*rest.Config, error) {
	tree, err := parse("kubeconfig", kubeconfig)
	if err != nil {
		return nil, err
	}
	a, err := readKubeconfig(tree, p)
	if err != nil {
		return nil, err
	}
	return a.config(p), nil
}

// readKubeconfig checks the whole kubeconfig and returns the access of its current context.
func readKubeconfig(tree any, p Policy) (*access, error) {
	if saysNothing(tree) {
		return nil, fault("kubeconfig", "is empty")
	}
	root, err := kubeconfigFields.object("", tree, p)
	if err != nil {
		return nil, err
	}
	clusters, err := namedEntries(root, "clusters", "cluster", clusterFields, p)
	if err != nil {
		return nil, err
	}
	users, err := namedEntries(root, "users", "user", userFields, p)
	if err != nil {
		return nil, err
	}
	contexts, err := namedEntries(root, "contexts", "context", contextFields, p)
	if err != nil {
		return nil, err
	}
	current, found := contexts[text(root, "current-context")]
	if !found {
		return nil, fault("current-context", "does not name a context")
	}
	cluster, found := clusters[text(current.fields, "cluster")]
	if !found {
		return nil, fault(join(current.path, "cluster"), "does not name a cluster")
	}
	user, found := users[text(current.fields, "user")]
	if !found {
		return nil, fault(join(current.path, "user"), "does not name a user")
	}
	return newAccess(cluster, user)
}

// entry is one cluster, user or context of a kubeconfig.
type entry struct {
	path   string
	fields map[string]any
}

// namedEntries reads a list of named entries. Two entries must not have the same name, because some programs would use
// the first one, and others the second one.
func namedEntries(root map[string]any, list, kind string, f fields, p Policy) (map[string]entry, error) {
	out := map[string]entry{}
	if root[list] == nil {
		return out, nil
	}
	items, isList := root[list].([]any)
	if !isList {
		return nil, fault(list, "is not a list")
	}
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", list, i)
		named, err := fields{"name": isText, kind: ignored}.object(path, item, p)
		if err != nil {
			return nil, err
		}
		name := text(named, "name")
		if name == "" {
			return nil, fault(join(path, "name"), "is missing")
		}
		if _, taken := out[name]; taken {
			return nil, fault(join(path, "name"), "is used twice")
		}
		inner, err := f.object(join(path, kind), named[kind], p)
		if err != nil {
			return nil, err
		}
		out[name] = entry{path: join(path, kind), fields: inner}
	}
	return out, nil
}
