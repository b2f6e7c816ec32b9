// SPDX-License-Identifier: Apache-2.0

// Package objectflags provides the flags of deployers that apply objects to Targets: the policy for Targets, their
// limits, and the ownership of objects.
package objectflags

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/targets"
)

// Options points to the variables that the flags set. All pointers are required.
type Options struct {
	// Targets is the policy that restricts the content of Targets.
	Targets *targets.Policy
	// TargetLimits are the limits for the resources that targets may use.
	TargetLimits *targets.Limits
	// SharedKinds are the kinds whose objects may belong to several items.
	SharedKinds *[]schema.GroupKind
	// Adoption determines what happens to existing objects that belong to no item.
	Adoption *apply.Adoption
	// CleanUpFirst deletes the objects in the old cluster first if an item moves to another cluster.
	CleanUpFirst *bool
}

// Add registers the flags. It sets the variables to their defaults. The flags accept kinds and adoptions that the
// deployer must validate.
func Add(fs *pflag.FlagSet, o Options) {
	*o.SharedKinds = apply.DefaultSharedKinds()
	fs.Var((*kinds)(o.SharedKinds), "shared-kinds",
		"kinds of objects that several deploy items may share, such as Namespace,Issuer.cert-manager.io: "+
			"each item applies its own fields, and the last one deletes the object; empty for none")
	fs.StringVar((*string)(o.Adoption), "adoption", "",
		"whether to adopt objects that already exist and belong to no deploy item: never (apply them, but never delete them), ifUnowned (adopt them, and leave them when the item is deleted), "+
			"or always (adopt them, and delete them together with the item); the default is never for kinds that contain data, and ifUnowned for all other kinds")
	fs.BoolVar(o.CleanUpFirst, "clean-up-first", false,
		"when a deploy item moves to another cluster, delete its objects in the old cluster before deploying to the new cluster (default: deploy first, then delete)")
	addPolicy(fs, o.Targets)
	addLimits(fs, o.TargetLimits)
}

// addPolicy registers a flag for each field of the policy.
func addPolicy(fs *pflag.FlagSet, p *targets.Policy) {
	fs.BoolVar(&p.AllowInsecureTLS, "allow-insecure-tls", false, "accept targets with insecure-skip-tls-verify")
	fs.BoolVar(&p.AllowHTTP, "allow-http", false, "accept targets without TLS")
	fs.BoolVar(&p.AllowProxy, "allow-proxy", false, "accept targets with proxy-url")
	fs.BoolVar(&p.AllowPrivateHosts, "allow-private-hosts", false,
		"accept targets at loopback and link-local addresses, cloud metadata services, and the deployer's own API server")
	fs.BoolVar(&p.AllowForeignSecrets, "allow-foreign-secrets", false,
		"allow the old form kubeconfig.secretRef to refer to Secrets outside of the Target's namespace")
	fs.BoolVar(&p.EnableOIDC, "enable-oidc-targets", false, "accept targets with oidcConfig; requires further rights")
	fs.BoolVar(&p.EnableSelf, "enable-self-targets", false, "accept targets with selfConfig; requires further rights")
	fs.StringSliceVar(&p.LandscaperAudiences, "landscaper-audiences", nil,
		"audiences that Landscaper's API server accepts; no tokens are created for these audiences (default: each new token is checked with a TokenReview)")
}

// kinds is a flag value that is a list of kinds, each in the form Kind or Kind.group.
type kinds []schema.GroupKind

// String returns the list in the format that Set accepts.
func (k *kinds) String() string {
	texts := make([]string, len(*k))
	for i, kind := range *k {
		texts[i] = kind.String()
	}
	return strings.Join(texts, ",")
}

// Set replaces the list. It does not check the kinds.
func (k *kinds) Set(text string) error {
	*k = kinds{}
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, ",") {
		*k = append(*k, schema.ParseGroupKind(strings.TrimSpace(one)))
	}
	return nil
}

// Type returns the type of the value for the help text.
func (k *kinds) Type() string { return "kinds" }
