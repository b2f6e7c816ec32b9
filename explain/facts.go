// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/history"
)

// Bounds of what is shown.
const (
	maxText          = 1024 // bytes of a message
	maxName          = 256  // bytes of a name
	maxRegistrations = 50
	maxLeases        = 200
	maxEvents        = 100
	maxDrift         = 5
	maxObjects       = 50
	maxNodes         = 200
	maxBlockers      = 10
	maxErrorCodes    = 10
)

// Facts are what [Gather] found out. The zero value of a field means that there is none.
type Facts struct {
	Now  time.Time
	Item *lsv1alpha1.DeployItem
	// Target is the item's Target; nil if it names none or it could not be read. TargetMissing is whether it does not exist.
	Target        *lsv1alpha1.Target
	TargetMissing bool
	// ContextMissing is whether the Context that the item names does not exist.
	ContextMissing bool
	// Deployers are the known deployers.
	Deployers []KnownDeployer
	// Events are events about the item, oldest first.
	Events []Event
	// History are the last reconciles, oldest first.
	History []history.Reconcile
	// Unknown are the parts that could not be read.
	Unknown []Unknown
}

// KnownDeployer is a deployer that says which items are its own.
type KnownDeployer struct {
	// Source is where it is known from.
	Source string
	Registered
	// Lease is the lease of the deployer, nil if there is none.
	Lease *Lease
}

// Lease is the state of a lease.
type Lease struct {
	Holder   string
	Renewed  time.Time
	Duration time.Duration
}

// Event is an event about the item.
type Event struct {
	Reason, Message string
	At              time.Time
}

// isUnknown reports whether a part could not be read.
func (f *Facts) isUnknown(part string) bool {
	for _, u := range f.Unknown {
		if u.Part == part {
			return true
		}
	}
	return false
}

// The parts that may be unknown.
const (
	partTarget    = "target"
	partContext   = "context"
	partLeases    = "leases"
	partDeployers = "deployer registrations"
	partEvents    = "events"
	partHistory   = "history"
)
