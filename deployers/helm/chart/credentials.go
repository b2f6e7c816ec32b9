// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// DefaultKeyringKey is the key of a keyring in its Secret, unless the configuration names another key.
const DefaultKeyringKey = "keyring"

// maxConfig is the maximum size of a docker configuration file.
const maxConfig = 1 << 20

// registryCredential is an entry of a docker configuration file.
type registryCredential struct {
	host, path string
	credential auth.Credential
}

// decodeDockerConfig decodes the content of a docker configuration file. In the old format, the entries are at the top
// level. The error contains no part of the content.
func decodeDockerConfig(data []byte, oldFormat bool) ([]registryCredential, error) {
	type entry struct {
		Username, Password, Auth, IdentityToken, RegistryToken string
	}
	var file struct{ Auths map[string]entry }
	var into any = &file
	if oldFormat {
		into = &file.Auths
	}
	if json.Unmarshal(data, into) != nil {
		return nil, errors.New("not a docker configuration file in JSON format")
	}
	var out []registryCredential
	for server, e := range file.Auths {
		if e.Auth != "" {
			decoded, err := base64.StdEncoding.DecodeString(e.Auth)
			user, password, found := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
			if err != nil || !found {
				return nil, errors.New("the field auth of an entry is not a user and a password in base64")
			}
			e.Username, e.Password = user, password
		}
		_, server = cutScheme(server)
		host, path, _ := strings.Cut(server, "/")
		switch path = strings.Trim(path, "/"); path {
		case "v1", "v2":
			path = ""
		}
		out = append(out, registryCredential{host: hostName(host), path: path, credential: auth.Credential{
			Username: e.Username, Password: e.Password, RefreshToken: e.IdentityToken, AccessToken: e.RegistryToken,
		}})
	}
	return out, nil
}

// cutScheme splits a URL after its scheme.
func cutScheme(address string) (scheme, rest string) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return "", address
	}
	return scheme, rest
}

// operatorCredentials returns the entries of the docker configuration files of the deployer. It reads the files each
// time, because they may be rotated.
func (f *fetcher) operatorCredentials() ([]registryCredential, error) {
	if f.options.OCI == nil {
		return nil, nil
	}
	var out []registryCredential
	for i, name := range f.options.OCI.ConfigFiles {
		entries, err := readDockerConfig(name)
		if err != nil {
			return nil, fmt.Errorf("oci.configFiles[%d]: %w", i, err)
		}
		out = append(out, entries...)
	}
	return out, nil
}

func readDockerConfig(name string) ([]registryCredential, error) {
	file, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	data, err := readAll(io.Reader(file), maxConfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	entries, err := decodeDockerConfig(data, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return entries, nil
}

// registryCredential returns the credential for a repository in a registry: the one with the longest path, and among
// equal paths the first of the Context's, before those of the deployer.
func (f *fetcher) registryCredential(ctx context.Context, r Request, host, repository string) (registryCredential, error) {
	best := registryCredential{host: host}
	found := false
	entries, err := contextCredentials(ctx, r)
	if err != nil {
		return best, err
	}
	operator, err := f.operatorCredentials()
	if err != nil {
		return best, err
	}
	for _, entry := range append(entries, operator...) {
		if entry.host == hostName(host) && isBelow("/"+repository, strings.TrimSuffix("/"+entry.path, "/")) && (!found || len(entry.path) > len(best.path)) {
			best, found = entry, true
		}
	}
	return best, nil
}

// contextCredentials returns the entries of the Secrets in the field registryPullSecrets of the Context.
func contextCredentials(ctx context.Context, r Request) ([]registryCredential, error) {
	if r.Context == nil {
		return nil, nil
	}
	var out []registryCredential
	for i, ref := range r.Context.RegistryPullSecrets {
		data, err := readSecret(ctx, r, ref.Name)
		if err != nil {
			return nil, fmt.Errorf("registryPullSecrets[%d] of the Context: %w", i, err)
		}
		for _, key := range []string{corev1.DockerConfigJsonKey, corev1.DockerConfigKey} {
			if content, ok := data[key]; ok {
				entries, err := decodeDockerConfig(content, key == corev1.DockerConfigKey)
				if err != nil {
					return nil, newError("", "registryPullSecrets[%d] of the Context: Secret %s, key %s: %w", i, ref.Name, key, err)
				}
				out = append(out, entries...)
			}
		}
	}
	return out, nil
}

// readSecret returns the data of a Secret in the namespace of the item.
func readSecret(ctx context.Context, r Request, name string) (map[string][]byte, error) {
	if r.Secrets == nil {
		return nil, errors.New("no access to Secrets")
	}
	secret := &corev1.Secret{}
	switch err := r.Secrets.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the Secret %s/%s does not exist", r.Namespace, name)
	case err != nil:
		return nil, fmt.Errorf("get Secret %s/%s: %w", r.Namespace, name, err)
	}
	return secret.Data, nil
}

// repositoryAuth is the credential for a chart repository.
type repositoryAuth struct {
	scope  scope
	header string
	ca     string
}

// key identifies the credential without containing it.
func (a repositoryAuth) key() string { return secretKey(a.header, a.ca) }

// secretKey returns a key for a cache that identifies secrets without containing them.
func secretKey(secrets ...string) string {
	sum := sha256.New()
	for _, secret := range secrets {
		_, _ = fmt.Fprintf(sum, "%d %s", len(secret), secret) // a hash returns no error
	}
	return string(sum.Sum(nil))
}

// repositoryAuth returns the credential for a URL: the entry of helmChartRepoCredentials in the Context that names the
// URL, or the longest URL above it.
func findRepositoryAuth(ctx context.Context, r Request, u *url.URL) (repositoryAuth, error) {
	best := repositoryAuth{scope: newScope(u)}
	if r.Context == nil {
		return best, nil
	}
	raw, ok := r.Context.Configurations[helmv1alpha1.HelmChartRepoCredentialsKey]
	if !ok {
		return best, nil
	}
	var credentials helmv1alpha1.HelmChartRepoCredentials
	if json.Unmarshal(raw.RawMessage, &credentials) != nil {
		return best, newError("", "%s of the Context: want a list auths in JSON or YAML", helmv1alpha1.HelmChartRepoCredentialsKey)
	}
	index := -1
	for i, entry := range credentials.Auths {
		address, err := parseAddress(entry.URL)
		if err != nil {
			return best, newError("", "%s.auths[%d].url of the Context: %w", helmv1alpha1.HelmChartRepoCredentialsKey, i, err)
		}
		if s := newScope(address); s.covers(u) && (index < 0 || len(s.path) > len(best.scope.path)) {
			best.scope, index = s, i
		}
	}
	if index < 0 {
		return best, nil
	}
	if err := best.read(ctx, r, credentials.Auths[index]); err != nil {
		return best, fmt.Errorf("%s.auths[%d] of the Context: %w", helmv1alpha1.HelmChartRepoCredentialsKey, index, err)
	}
	return best, nil
}

// read reads the credential of an entry.
func (a *repositoryAuth) read(ctx context.Context, r Request, entry helmv1alpha1.Auth) error {
	hasHeader, hasSecret := entry.AuthHeader != "", entry.SecretRef != nil
	if hasHeader && hasSecret || !hasHeader && !hasSecret && entry.CustomCAData == "" {
		return newError("", "must have either authHeader or secretRef")
	}
	a.header = entry.AuthHeader
	if hasSecret {
		value, err := secretValue(ctx, r, *entry.SecretRef, "authHeader")
		if err != nil {
			return fmt.Errorf("secretRef: %w", err)
		}
		a.header = strings.TrimSpace(string(value))
	}
	if a.header != "" {
		scheme, rest, _ := strings.Cut(a.header, " ")
		if known := strings.EqualFold(scheme, "Basic") || strings.EqualFold(scheme, "Bearer"); !known || rest == "" || !isHeaderValue(a.header) {
			return newError("", "the header must have the form \"Basic …\" or \"Bearer …\"")
		}
	}
	if entry.CustomCAData == "" {
		return nil
	}
	ca := []byte(entry.CustomCAData)
	if decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(entry.CustomCAData), "")); err == nil {
		ca = decoded
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return newError("", "customCAData contains no certificate in PEM format")
	}
	a.ca = string(ca)
	return nil
}

// secretValue returns a value of a Secret in the namespace of the item.
func secretValue(ctx context.Context, r Request, ref lsv1alpha1.LocalSecretReference, defaultKey string) ([]byte, error) {
	data, err := readSecret(ctx, r, ref.Name)
	if err != nil {
		return nil, err
	}
	key := ref.Key
	if key == "" {
		key = defaultKey
	}
	value, ok := data[key]
	if !ok {
		return nil, fmt.Errorf("the Secret %s/%s has no key %q", r.Namespace, ref.Name, key)
	}
	return value, nil
}

// isHeaderValue reports whether a text can be sent as the value of a header.
func isHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f })
}

// parseAddress parses a URL. Without a scheme, it adds https. The error does not contain the URL.
func parseAddress(address string) (*url.URL, error) {
	if scheme, rest := cutScheme(address); scheme == "" {
		address = "https://" + rest
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, errors.New("is not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("must be a URL with the scheme https or http")
	case u.User != nil:
		return nil, errors.New("must not contain credentials")
	}
	return u, nil
}

// credentialError returns an Error for a credential that cannot be read.
func credentialError(path string, err error) *Error {
	fault, ok := errors.AsType[*Error](err)
	return &Error{Path: path, Final: ok && fault.Final, Err: errors.New(oneLine(err.Error()))}
}

// authorize returns a route to a URL with the credential.
func (f *fetcher) authorize(a repositoryAuth) *http.Client {
	return (&route{fetcher: f, scope: a.scope, header: a.header, ca: a.ca}).client()
}
