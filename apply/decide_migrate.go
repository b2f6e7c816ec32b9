// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"regexp"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// removedVersion matches the API server's error if an entry of managedFields has an API version that the
// CustomResourceDefinition does not contain any more. The API server then rejects each write of the object. If the
// definition contains the version but does not serve it, writes succeed.
var removedVersion = regexp.MustCompile(`request to convert CR to an invalid group/version: (\S+)`)

// removedVersionIn returns the API version that an error of the kind removedVersion names, or "".
func removedVersionIn(err error) string {
	if err == nil {
		return ""
	}
	if found := removedVersion.FindStringSubmatch(err.Error()); found != nil {
		return found[1]
	}
	return ""
}

// migrate returns the steps that replace a removed API version in managedFields by the version of the reference, and
// then take the step s again. The fields of the entries stay the same, so that the next apply still removes fields that
// left the manifest.
func (s step) migrate(r rules, k known, removed string) step {
	if r.dry {
		return k.wait("managedFields contains the API version %s, which the cluster does not serve any more; the next deployment replaces it", removed)
	}
	k.migrated, k.fault = removed, k.err
	return k.read(func(r rules, k known) step {
		if k.live == nil {
			return k.wait("changed while its managedFields were migrated")
		}
		rename, err := ownership.MigratePatch(k.live, removed, k.Ref().APIVersion)
		if err != nil || rename == nil {
			return k.fail(k.fault)
		}
		return decideRename(k, rename, func(_ rules, k known) step {
			k.note(ReasonMigrated, fmt.Sprintf("contained the API version %s in managedFields, which the cluster does not serve any more; it is now %s",
				removed, k.Ref().APIVersion))
			k.fault = nil
			s.known = k
			return s
		})
	})
}
