// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/history"
)

// These constants limit the size of the output.
const (
	maxText          = 1024 // length of a message in bytes
	maxName          = 256  // length of a name in bytes
	maxRegistrations = 50
	maxPage          = 200 // leases or registrations in one response
	maxPages         = 25
	maxKnown         = 1000
	maxTypes         = 10
	maxEvents        = 100
	maxDrift         = 5
	maxObjects       = 50
	maxNodes         = 200
	maxBlockers      = 10
	maxErrorCodes    = 10
)

// Facts is the result of [ReadFacts]. A field is zero if the fact does not exist or could not be read.
type Facts struct {
	Now  time.Time
	Item *lsv1alpha1.DeployItem
	// Target is the Target of the item. It is nil if the item has no Target or if the Target could not be read.
	// TargetMissing is true if the item refers to a Target that does not exist.
	Target        *lsv1alpha1.Target
	TargetMissing bool
	// ContextMissing is true if the Context of the item does not exist.
	ContextMissing bool
	// Deployers contains the deployers that have published for which items they are responsible: those for items of the
	// same type, and the one that processed the item before.
	Deployers []KnownDeployer
	// OmittedDeployers is the number of further deployers, if there are too many.
	OmittedDeployers int
	// Types contains types of items that other deployers process.
	Types []string
	// Events contains the events about the item, oldest first.
	Events []Event
	// History contains the last reconciles, oldest first.
	History []history.Reconcile
	// Unknown lists the parts that could not be read.
	Unknown []Unknown
}

// KnownDeployer is a deployer that publishes for which items it is responsible.
type KnownDeployer struct {
	// Source is the object that contains the deployer's registration: a lease or a DeployerRegistration.
	Source string
	// LeaseNamespace is the namespace of the lease. It is empty if there is no lease.
	LeaseNamespace string
	// Created is the time at which the API server created the object.
	Created time.Time
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

// isUnknown reports whether a part of the facts could not be read.
func (f *Facts) isUnknown(part string) bool {
	for _, u := range f.Unknown {
		if u.Part == part {
			return true
		}
	}
	return false
}

// These constants name the parts of the facts that may be unknown.
const (
	partTarget    = "target"
	partContext   = "context"
	partLeases    = "leases"
	partDeployers = "deployer registrations"
	partEvents    = "events"
	partHistory   = "history"
)
