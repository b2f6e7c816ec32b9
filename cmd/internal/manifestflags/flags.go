// SPDX-License-Identifier: Apache-2.0

// Package manifestflags provides flags that configure how manifests and targets are handled. The manifest deployer and
// `deployerkit plan` have the same flags, so that a plan applies the same rules as the deployer.
package manifestflags

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// Add registers the flags that set the fields of o. After the flags have been parsed, call [manifest.Options.Validate].
func Add(fs *pflag.FlagSet, o *manifest.Options) {
	fs.StringVar((*string)(&o.Strategy), "default-strategy", string(manifest.StrategyApply),
		"update strategy of deploy items that set none: apply, update, patch, merge or mergeOverwrite; "+
			"the default of Landscaper's own manifest deployer is update")
	fs.BoolVar(&o.Recreate, "recreate", false, "delete and recreate objects whose immutable fields changed, instead of returning an error")
	o.SharedKinds = apply.DefaultSharedKinds()
	fs.Var((*kinds)(&o.SharedKinds), "shared-kinds",
		"kinds of objects that several deploy items may share, such as Namespace,Issuer.cert-manager.io: "+
			"each item applies its own fields, and the last one deletes the object; empty for none")
	fs.StringVar((*string)(&o.Adoption), "adoption", "",
		"whether to adopt objects that already exist and belong to no deploy item: never (apply them, but never delete them), ifUnowned (adopt them, and leave them when the item is deleted), "+
			"or always (adopt them, and delete them together with the item); the default is never for kinds that contain data, and ifUnowned for all other kinds")
	fs.BoolVar(&o.CleanUpFirst, "clean-up-first", false,
		"when a deploy item moves to another cluster, delete its objects in the old cluster before deploying to the new cluster (default: deploy first, then delete)")
	p := &o.Targets
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
	addLimits(fs, &o.TargetLimits)
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

// Set replaces the list. It does not check the kinds, because [manifest.Options.Validate] does.
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
