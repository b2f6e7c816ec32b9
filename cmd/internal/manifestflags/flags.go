// SPDX-License-Identifier: Apache-2.0

// Package manifestflags provides flags that configure how manifests and targets are handled. The manifest deployer and
// `deployerkit plan` have the same flags, so that a plan applies the same rules as the deployer.
package manifestflags

import (
	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/deployermain/objectflags"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

// Add registers the flags that set the fields of o. After the flags have been parsed, call [manifest.Options.Validate].
func Add(fs *pflag.FlagSet, o *manifest.Options) {
	fs.StringVar((*string)(&o.Strategy), "default-strategy", string(manifest.StrategyApply),
		"update strategy of deploy items that set none: apply, update, patch, merge or mergeOverwrite; "+
			"the default of Landscaper's own manifest deployer is update")
	fs.BoolVar(&o.Recreate, "recreate", false, "delete and recreate objects whose immutable fields changed, instead of returning an error")
	objectflags.Add(fs, objectflags.Options{
		Targets: &o.Targets, TargetLimits: &o.TargetLimits, SharedKinds: &o.SharedKinds, Adoption: &o.Adoption, CleanUpFirst: &o.CleanUpFirst,
	})
}
