// SPDX-License-Identifier: Apache-2.0

// Package manifestflags provides the flags for an operator's choices about manifests and targets. The manifest deployer
// and `deployerkit plan` share them, so that a plan rejects what the deployer would reject.
package manifestflags

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// Add registers the flags. Parsing them sets the options. Check the result with [manifest.Options.Validate].
func Add(fs *pflag.FlagSet, o *manifest.Options) {
	fs.StringVar((*string)(&o.Strategy), "default-strategy", string(manifest.StrategyApply),
		"update strategy of deploy items that set none: apply, update, patch, merge or mergeOverwrite; "+
			"the default of Landscaper's own manifest deployer is update")
	fs.BoolVar(&o.Recreate, "recreate", false, "delete and recreate objects whose immutable fields changed, instead of returning an error")
	o.SharedKinds = apply.DefaultSharedKinds()
	fs.Var((*kinds)(&o.SharedKinds), "shared-kinds",
		"kinds whose objects may be in several deploy items, such as Namespace,Issuer.cert-manager.io: "+
			"each item applies its own fields, and the last one deletes the object; empty for none")
	fs.StringVar((*string)(&o.Adoption), "adoption", "",
		"what to do with objects that exist already and belong to no deploy item: never (apply, and do not delete), ifUnowned (adopt, and release), "+
			"or always (adopt, and delete with the item); the default is never for kinds that hold data, and ifUnowned for the others")
	fs.BoolVar(&o.CleanUpFirst, "clean-up-first", false,
		"delete the objects in the old cluster before an item is deployed to another one, instead of afterwards")
	p := &o.Targets
	fs.BoolVar(&p.AllowInsecureTLS, "allow-insecure-tls", false, "accept targets with insecure-skip-tls-verify")
	fs.BoolVar(&p.AllowHTTP, "allow-http", false, "accept targets without TLS")
	fs.BoolVar(&p.AllowProxy, "allow-proxy", false, "accept targets with proxy-url")
	fs.BoolVar(&p.AllowPrivateHosts, "allow-private-hosts", false,
		"accept targets at loopback and link-local addresses, cloud metadata services, and the deployer's own API server")
	fs.BoolVar(&p.AllowForeignSecrets, "allow-foreign-secrets", false,
		"let the old form kubeconfig.secretRef name secrets outside of the Target's namespace")
	fs.BoolVar(&p.EnableOIDC, "enable-oidc-targets", false, "accept targets with oidcConfig; requires further rights")
	fs.BoolVar(&p.EnableSelf, "enable-self-targets", false, "accept targets with selfConfig; requires further rights")
	fs.StringSliceVar(&p.LandscaperAudiences, "landscaper-audiences", nil,
		"audiences that Landscaper's API server accepts; tokens for them are not created (default: each new token is reviewed)")
	addLimits(fs, &o.TargetLimits)
}

// kinds is a flag whose value is a list of kinds, each in the form Kind or Kind.group.
type kinds []schema.GroupKind

// String returns the list in the form that Set accepts.
func (k *kinds) String() string {
	texts := make([]string, len(*k))
	for i, kind := range *k {
		texts[i] = kind.String()
	}
	return strings.Join(texts, ",")
}

// Set replaces the list. [manifest.Options.Validate] checks the kinds.
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

// Type returns the type for the help text.
func (k *kinds) Type() string { return "kinds" }
