// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// migrateManagedFields returns the steps that replace a removed API version in managedFields by the version of the
// reference, and then take the step s again. The fields of the entries stay the same, so that the next apply still
// removes fields that left the manifest.
func migrateManagedFields(r *Rules, f Facts, s Step, removed string) Step {
	if r.DryRun {
		return f.wait("managedFields contains the API version %s, which the cluster does not serve any more; the next deployment replaces it", removed)
	}
	f.migrated, f.fault, f.interrupted = removed, f.err, &s
	return f.read(migrateReading)
}

func handleMigrateReading(_ *Rules, f Facts) Step {
	if f.Live == nil {
		return f.wait("changed while its managedFields were migrated")
	}
	rename, err := ownership.NewMigrationPatch(f.Live, f.migrated, f.Ref().APIVersion)
	if err != nil || rename == nil {
		return f.fail(f.fault)
	}
	return f.request(migrateRenaming, Request{Effect: EffectRename, Rename: rename})
}

func handleMigrateRenaming(_ *Rules, f Facts) Step {
	if end, failed := f.handleFailedRename(); failed {
		return end
	}
	f.recordEvent(object.ReasonMigrated, fmt.Sprintf("contained the API version %s in managedFields, which the cluster does not serve any more; it is now %s",
		f.migrated, f.Ref().APIVersion))
	again := *f.interrupted
	f.fault, f.interrupted = nil, nil
	again.Facts = f
	return again
}
