// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/history"
)

// Limits of what is shown.
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

// Facts is the result of [Gather]. A field that is zero means that there is none.
type Facts struct {
	Now  time.Time
	Item *lsv1alpha1.DeployItem
	// Target is the item's Target. It is nil if the item names none or if it could not be read. TargetMissing reports
	// that it does not exist.
	Target        *lsv1alpha1.Target
	TargetMissing bool
	// ContextMissing reports that the Context of the item does not exist.
	ContextMissing bool
	// Deployers are the known deployers.
	Deployers []KnownDeployer
	// Events has the events about the item, oldest first.
	Events []Event
	// History has the last reconciles, oldest first.
	History []history.Reconcile
	// Unknown lists the parts that could not be read.
	Unknown []Unknown
}

// KnownDeployer is a deployer that publishes which items it is responsible for.
type KnownDeployer struct {
	// Source is the source of the information.
	Source string
	Registered
	// Lease is the lease of the deployer, or nil if there is none.
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
