// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/deployerkit/deployerkit/targets/internal/limits"
)

// Limits protects the deployer from targets that send too many or too large responses and events. The operator sets the
// Limits, as well as the Policy. If a field is zero, its default applies.
type Limits struct {
	// Object is the maximum size of a response about one object, in bytes after decompression. The default is 8 MiB.
	Object int64
	// Page is the maximum size of a page of a list, in bytes. The default is 8 MiB.
	Page int64
	// PageSize is the number of objects per page of a list. If a page exceeds the limit Page, it is requested again
	// with half as many objects. The default is 500.
	PageSize int64
	// List is the maximum size of all pages of a list together, in bytes. The default is 64 MiB.
	List int64
	// Discovery is the maximum size of one response to a discovery request, in bytes. The default is 8 MiB.
	Discovery int64
	// Groups is the maximum number of API group versions that a target may serve. The default is 1000.
	Groups int
	// Requests is the maximum number of concurrent requests to one target, not counting watches. The default is 32.
	Requests int
	// Reading is the maximum total size, in bytes, of the large responses that the deployer reads at the same time, for
	// all targets together. The default is 32 MiB.
	Reading int64
	// Decoding is the maximum memory, in bytes, for responses that are decoded at the same time, for all targets
	// together. A single response that would take more memory is rejected. The default is 96 MiB.
	Decoding int64
	// WatchObjects is the maximum number of existing objects that a watch may send at its beginning. The default is
	// 20000.
	WatchObjects int
	// WatchEvents is the maximum sustained number of events per second in a watch. The default is 1000.
	WatchEvents int
	// WatchBytes is the maximum sustained number of bytes per second in a watch. The default is 4 MiB.
	WatchBytes int64
}

func (l Limits) withDefaults() Limits {
	const mib = 1 << 20
	l.Object, l.Page, l.PageSize = cmp.Or(l.Object, 8*mib), cmp.Or(l.Page, 8*mib), cmp.Or(l.PageSize, 500)
	l.List, l.Discovery, l.Groups = cmp.Or(l.List, 64*mib), cmp.Or(l.Discovery, 8*mib), cmp.Or(l.Groups, 1000)
	l.Requests, l.Reading, l.Decoding = cmp.Or(l.Requests, 32), cmp.Or(l.Reading, 32*mib), cmp.Or(l.Decoding, 96*mib)
	l.WatchObjects = cmp.Or(l.WatchObjects, 20_000)
	l.WatchEvents, l.WatchBytes = cmp.Or(l.WatchEvents, 1000), cmp.Or(l.WatchBytes, 4*mib)
	return l
}

// Validate returns an error that lists every negative limit.
func (l Limits) Validate() error {
	var faults []error
	for field, value := range reflect.ValueOf(l).Fields() {
		if value.Int() < 0 {
			faults = append(faults, fmt.Errorf("limits of targets: %s is %d, must not be negative", field.Name, value.Int()))
		}
	}
	return errors.Join(faults...)
}

// GetLimitFlag returns the flag for a field of Limits in the programs of this module. For example, the flag for
// WatchEvents is --target-limit-watch-events.
func GetLimitFlag(option string) string { return limits.GetFlag(option) }

// LimitError is returned if a response exceeds one of the Limits. Use errors.As to find it. Its field Option is the
// name of the field of Limits that sets the limit, or empty if the limit is fixed. Its field Reason describes how the
// response exceeded the limit.
type LimitError = limits.Error

// ReserveMemory returns a context for one call of a client, such as a dynamic client, that was created from
// Client.Config and Client.HTTPClient. The memory for decoding the response counts against Limits.Decoding until the
// function `release` is called. Call `release` when the call of the client has returned. The methods of Client call
// ReserveMemory themselves. If a caller does not call ReserveMemory, the time until the response is decoded is
// estimated.
func ReserveMemory(ctx context.Context) (reserved context.Context, release func()) {
	ctx, reservation := limits.WithReservation(ctx)
	return ctx, reservation.Release
}
