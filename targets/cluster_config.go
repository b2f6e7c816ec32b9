// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"math"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/core/v1alpha1/targettypes"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// clusterConfig is the content of a Target of type kubernetes-cluster. Exactly one of its fields is set.
type clusterConfig struct {
	kubeconfig any        // the parsed kubeconfig
	secret     *secretKey // the old form {"kubeconfig": {"secretRef": …}}
	oidc       *oidcConfig
	self       *selfConfig
}

// secretKey identifies a value in a secret.
type secretKey struct {
	types.NamespacedName
	key string
}

type oidcConfig struct {
	server, serviceAccount string
	ca                     []byte
	audience               []string
	expiration             int64
}

type selfConfig struct {
	serviceAccount string
	expiration     int64
}

const (
	// defaultExpiration is the default lifetime of tokens in seconds, as Landscaper documents it.
	defaultExpiration = 86400
	// minExpiration is the shortest lifetime that Kubernetes grants.
	minExpiration = 600
)

var (
	secretFields  = fields{"name": isText, "namespace": isText, "key": isText}
	accountFields = fields{"name": isAccountName}
	oidcFields    = fields{
		"server": validateServer, "caData": isBase64, "serviceAccount": acceptAny, "audience": isAudience, "expirationSeconds": isExpiration,
	}
	selfFields = fields{"serviceAccount": acceptAny, "expirationSeconds": isExpiration}
)

// readContent reads the content of a Target by the rules of Landscaper. If the content is an object with a field
// kubeconfig, oidcConfig or selfConfig, the first of these fields that is set is used. Any other content is a
// kubeconfig. The content is not decoded into Landscaper's Go type, because this type no longer has the field
// newKubeconfig.secretRef.
func readContent(t *lsv1alpha1.ResolvedTarget, p Policy) (*clusterConfig, error) {
	if t == nil || t.Target == nil {
		return nil, newConfigError("target", "is missing")
	}
	if t.Spec.Type != targettypes.KubernetesClusterTargetType {
		return nil, newConfigError("type", fmt.Sprintf("is not %q", targettypes.KubernetesClusterTargetType))
	}
	tree, err := parseDocument("config", []byte(t.Content))
	if err != nil {
		return nil, err
	}
	if isAbsent(tree) {
		return nil, newConfigError("config", "is empty")
	}
	object, _ := tree.(map[string]any)
	switch {
	case object["kubeconfig"] != nil:
		return readKubeconfigRef(t.Namespace, object["kubeconfig"], p)
	case object["oidcConfig"] != nil:
		return readOIDC(object["oidcConfig"], p)
	case object["selfConfig"] != nil:
		return readSelf(object["selfConfig"], p)
	}
	return readText(tree)
}

// readText reads a kubeconfig, which may be an object or a string.
func readText(tree any) (*clusterConfig, error) {
	if inner, isString := tree.(string); isString {
		var err error
		if tree, err = parseDocument("kubeconfig", []byte(inner)); err != nil {
			return nil, err
		}
	}
	return &clusterConfig{kubeconfig: tree}, nil
}

func readKubeconfigRef(namespace string, value any, p Policy) (*clusterConfig, error) {
	object, _ := value.(map[string]any)
	if object["secretRef"] == nil {
		return readText(value)
	}
	const path = "kubeconfig.secretRef"
	if _, err := (fields{"secretRef": acceptAny}).readObject("kubeconfig", value, p); err != nil {
		return nil, err
	}
	ref, err := secretFields.readObject(path, object["secretRef"], p)
	if err != nil {
		return nil, err
	}
	out := &secretKey{NamespacedName: types.NamespacedName{Namespace: getText(ref, "namespace"), Name: getText(ref, "name")}, key: getText(ref, "key")}
	if out.Namespace == "" {
		out.Namespace = namespace
	}
	if out.key == "" {
		out.key = targettypes.DefaultKubeconfigKey
	}
	switch {
	case out.Name == "" || len(validation.IsDNS1123Subdomain(out.Name)) > 0:
		return nil, newConfigError(path+".name", "is not a valid Secret name")
	case len(validation.IsConfigMapKey(out.key)) > 0:
		return nil, newConfigError(path+".key", "is not a valid key of a Secret")
	case out.Namespace != namespace && !p.AllowForeignSecrets:
		return nil, newConfigError(path+".namespace", "must be the namespace of the Target; other namespaces are not allowed by the operator")
	case len(validation.IsDNS1123Label(out.Namespace)) > 0:
		return nil, newConfigError(path+".namespace", "is not a valid namespace name")
	}
	return &clusterConfig{secret: out}, nil
}

func readOIDC(value any, p Policy) (*clusterConfig, error) {
	const path = "oidcConfig"
	if !p.EnableOIDC {
		return nil, newConfigError(path, "OIDC targets are not enabled by the operator")
	}
	object, err := oidcFields.readObject(path, value, p)
	if err != nil {
		return nil, err
	}
	c := &oidcConfig{server: getText(object, "server"), ca: getData(object, "caData"), expiration: getExpiration(object)}
	if c.serviceAccount, err = readAccountName(path, object, p); err != nil {
		return nil, err
	}
	audience, _ := object["audience"].([]any)
	for _, one := range audience {
		s, _ := one.(string) // isAudience accepts only strings
		c.audience = append(c.audience, s)
	}
	switch {
	case c.server == "":
		return nil, newConfigError(path+".server", "is missing")
	case c.ca != nil && !isCA(c.ca):
		return nil, newConfigError(path+".caData", "contains no PEM certificate")
	case len(c.audience) == 0:
		return nil, newConfigError(path+".audience", "is empty, so the token would also be valid for Landscaper's API server")
	}
	return &clusterConfig{oidc: c}, nil
}

func readSelf(value any, p Policy) (*clusterConfig, error) {
	const path = "selfConfig"
	if !p.EnableSelf {
		return nil, newConfigError(path, "self targets are not enabled by the operator")
	}
	object, err := selfFields.readObject(path, value, p)
	if err != nil {
		return nil, err
	}
	account, err := readAccountName(path, object, p)
	if err != nil {
		return nil, err
	}
	return &clusterConfig{self: &selfConfig{serviceAccount: account, expiration: getExpiration(object)}}, nil
}

func readAccountName(path string, object map[string]any, p Policy) (string, error) {
	path += ".serviceAccount"
	account, err := accountFields.readObject(path, object["serviceAccount"], p)
	if err != nil {
		return "", err
	}
	if getText(account, "name") == "" {
		return "", newConfigError(path+".name", "is missing")
	}
	return getText(account, "name"), nil
}

func isAccountName(path string, value any, _ Policy) error {
	name, _ := value.(string)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return newConfigError(path, "is not a valid ServiceAccount name")
	}
	return nil
}

// isAudience checks that the value is a list of audiences without any audience of the Landscaper cluster.
func isAudience(path string, value any, p Policy) error {
	list, isList := value.([]any)
	if !isList {
		return newConfigError(path, "is not a list")
	}
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		audience, _ := item.(string)
		if audience == "" {
			return newConfigError(at, "is empty or not a string")
		}
		if slices.Contains(p.LandscaperAudiences, audience) {
			return newConfigError(at, "is an audience of Landscaper's API server, so the token would also be valid there")
		}
	}
	return nil
}

func isExpiration(path string, value any, _ Policy) error {
	seconds := toNumber(value)
	if seconds < minExpiration || seconds > math.MaxUint32 || seconds != math.Trunc(seconds) {
		return newConfigError(path, fmt.Sprintf("is not a number of at least %d seconds", minExpiration))
	}
	return nil
}

func getExpiration(object map[string]any) int64 {
	if seconds := toNumber(object["expirationSeconds"]); seconds != 0 {
		return int64(seconds)
	}
	return defaultExpiration
}
