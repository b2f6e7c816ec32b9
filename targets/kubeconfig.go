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
		"apiVersion": acceptOnly("v1"), "kind": acceptOnly("Config"), "preferences": acceptAny, "extensions": acceptAny,
		"clusters": acceptAny, "contexts": acceptAny, "users": acceptAny, // parseNamedEntries checks the entries of these lists
		"current-context": isText,
	}
	contextFields = fields{"cluster": isText, "user": isText, "namespace": isText, "extensions": acceptAny}
	clusterFields = fields{
		"server":                     validateServer,
		"tls-server-name":            isText,
		"certificate-authority-data": isBase64,
		"disable-compression":        isFlag,
		"extensions":                 acceptAny,
		"insecure-skip-tls-verify":   rejectUnlessAllowed("the identity of the server would not be verified", func(p Policy) bool { return p.AllowInsecureTLS }, isFlag),
		"proxy-url":                  rejectUnlessAllowed("the target would choose the route of the traffic", func(p Policy) bool { return p.AllowProxy }, validateProxy),
		"certificate-authority":      rejectAlways("it names a file of the deployer; use certificate-authority-data"),
	}
	userFields = fields{
		"token":                   isToken,
		"client-certificate-data": isBase64,
		"client-key-data":         isBase64,
		"extensions":              acceptAny,
		"exec":                    rejectAlways("it runs a program in the deployer"),
		"auth-provider":           rejectAlways("it runs an authentication plugin in the deployer"),
		"client-certificate":      rejectAlways("it names a file of the deployer; use client-certificate-data"),
		"client-key":              rejectAlways("it names a file of the deployer; use client-key-data"),
		"tokenFile":               rejectAlways("it names a file of the deployer; use token"),
		"as":                      rejectAlways("impersonation"),
		"as-uid":                  rejectAlways("impersonation"),
		"as-groups":               rejectAlways("impersonation"),
		"as-user-extra":           rejectAlways("impersonation"),
		"username":                rejectAlways("passwords are not supported; use a token or a client certificate"),
		"password":                rejectAlways("passwords are not supported; use a token or a client certificate"),
	}
)

// RESTConfigFromKubeconfig converts a kubeconfig (YAML or JSON) to a REST config. All fields of the kubeconfig must
// pass an allow-list, including the fields of clusters, contexts and users that the current context does not use.
// Clients with this REST config do not connect to addresses that p forbids, even if a host name resolves to such an
// address, and they do not follow redirects. They have no client-side rate limit. They do not log warnings of the
// server, because the target controls the text of its warnings.
//
// Prefer Pool, which shares one client per target and renews its credentials. RESTConfigFromKubeconfig is for programs
// that need a single client. Errors are *ConfigError and never contain content of the kubeconfig.
func RESTConfigFromKubeconfig(kubeconfig []byte, p Policy) (*rest.Config, error) {
	tree, err := parseDocument("kubeconfig", kubeconfig)
	if err != nil {
		return nil, err
	}
	a, err := readKubeconfig(tree, p)
	if err != nil {
		return nil, err
	}
	return a.newRESTConfig(p), nil
}

// readKubeconfig checks the whole kubeconfig and returns the access of its current context.
func readKubeconfig(tree any, p Policy) (*access, error) {
	if isAbsent(tree) {
		return nil, newConfigError("kubeconfig", "is empty")
	}
	root, err := kubeconfigFields.readObject("", tree, p)
	if err != nil {
		return nil, err
	}
	clusters, err := parseNamedEntries(root, "clusters", "cluster", clusterFields, p)
	if err != nil {
		return nil, err
	}
	users, err := parseNamedEntries(root, "users", "user", userFields, p)
	if err != nil {
		return nil, err
	}
	contexts, err := parseNamedEntries(root, "contexts", "context", contextFields, p)
	if err != nil {
		return nil, err
	}
	current, found := contexts[getText(root, "current-context")]
	if !found {
		return nil, newConfigError("current-context", "does not name a context")
	}
	cluster, found := clusters[getText(current.fields, "cluster")]
	if !found {
		return nil, newConfigError(joinPath(current.path, "cluster"), "does not name a cluster")
	}
	user, found := users[getText(current.fields, "user")]
	if !found {
		return nil, newConfigError(joinPath(current.path, "user"), "does not name a user")
	}
	return newAccess(cluster, user)
}

// entry is one cluster, user or context of a kubeconfig.
type entry struct {
	path   string
	fields map[string]any
}

// parseNamedEntries reads a list of named entries. Two entries must not have the same name, because some programs would
// use the first one, and others the second one.
func parseNamedEntries(root map[string]any, list, kind string, f fields, p Policy) (map[string]entry, error) {
	out := map[string]entry{}
	if root[list] == nil {
		return out, nil
	}
	items, isList := root[list].([]any)
	if !isList {
		return nil, newConfigError(list, "is not a list")
	}
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", list, i)
		named, err := fields{"name": isText, kind: acceptAny}.readObject(path, item, p)
		if err != nil {
			return nil, err
		}
		name := getText(named, "name")
		if name == "" {
			return nil, newConfigError(joinPath(path, "name"), "is missing")
		}
		if _, taken := out[name]; taken {
			return nil, newConfigError(joinPath(path, "name"), "is used twice")
		}
		inner, err := f.readObject(joinPath(path, kind), named[kind], p)
		if err != nil {
			return nil, err
		}
		out[name] = entry{path: joinPath(path, kind), fields: inner}
	}
	return out, nil
}
