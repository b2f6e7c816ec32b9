// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/internal/notfound"
)

const (
	// layoutAnnotation is the annotation of a lease that contains a layoutRecord as JSON.
	layoutAnnotation = "deployerkit.dev/shards"
	// layoutSuffix is the suffix in the name of the lease with the layoutRecord.
	layoutSuffix = "-shards"
)

// layout makes sure that processes with different numbers of shards do not work at the same time. All processes of a
// deployment share one lease that records the number of shards. A process works only while it holds the lease of its
// shard and the record contains its number of shards.
//
// The order of requests prevents races. A process that acquires the lease of its shard reads the record afterwards. A
// process that changes the record reads the leases of the previous shards afterwards, and waits until they are released
// or expired. Either the first process finds the changed record, or the second process finds the acquired lease.
type layout struct {
	leases   coordinationv1client.LeaseInterface
	id       string // the name of the lease without shards
	shards   int    // the number of shards of this process; at least 1
	duration time.Duration
	clock    clock.PassiveClock
	observed map[string]observedLease
}

// layoutRecord is the number of shards of a deployment.
type layoutRecord struct {
	// Shards is the number of shards.
	Shards int `json:"shards"`
	// Draining contains previous numbers of shards. Processes with these numbers may still work.
	Draining []int `json:"draining,omitempty"`
}

// observedLease is the version of a lease that a process has read, and when it has first read this version.
type observedLease struct {
	version string
	since   time.Time
}

// getShardLeaseName returns the name of the lease of a shard. Without shards, it is the ID itself.
func getShardLeaseName(id string, shard deployerlib.Shard) string {
	if shard.Count <= 1 {
		return id
	}
	return fmt.Sprintf("%s-%d-of-%d", id, shard.Index, shard.Count)
}

// tryAdopt reports whether the record contains the number of shards of this process. If it contains another number, and
// no process with that number holds a lease, tryAdopt changes the record. It does not change a record that was changed
// within the duration of a lease, so that the processes that work with this record have the time to acquire their leases.
func (y *layout) tryAdopt(ctx context.Context) (bool, error) {
	record, lease, err := y.read(ctx)
	if err != nil || record.Shards == y.shards {
		return err == nil, err
	}
	if lease != nil && lease.Spec.RenewTime != nil && y.clock.Since(lease.Spec.RenewTime.Time) < y.duration {
		return false, nil
	}
	if free, err := y.areFree(ctx, record.Shards); err != nil || !free {
		return false, err
	}
	draining := slices.DeleteFunc(append(record.Draining, record.Shards), func(n int) bool { return n == y.shards })
	slices.Sort(draining)
	return y.write(ctx, lease, layoutRecord{Shards: y.shards, Draining: slices.Compact(draining)})
}

// checkCurrent reports whether the record contains the number of shards of this process, and whether no process with
// another number can work. Call it after the lease of the shard was acquired.
func (y *layout) checkCurrent(ctx context.Context) (current, drained bool, err error) {
	record, lease, err := y.read(ctx)
	if err != nil || record.Shards != y.shards {
		return false, false, err
	}
	if len(record.Draining) == 0 {
		return true, true, nil
	}
	for _, shards := range record.Draining {
		if free, err := y.areFree(ctx, shards); err != nil || !free {
			return true, false, err
		}
	}
	drained, err = y.write(ctx, lease, layoutRecord{Shards: y.shards})
	return true, drained, err
}

// areFree reports whether all leases of the given number of shards are released, expired or missing. It reads all of
// them, even if one is not free, because an expired lease is free only after this process has observed it for its
// duration. The clocks of other processes do not matter.
func (y *layout) areFree(ctx context.Context, shards int) (bool, error) {
	free := true
	for index := range shards {
		name := getShardLeaseName(y.id, deployerlib.Shard{Index: index, Count: shards})
		lease, err := y.leases.Get(ctx, name, metav1.GetOptions{})
		if notfound.IsProof(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("get lease %s: %w", name, err)
		}
		free = y.isFree(lease) && free
	}
	return free, nil
}

// isFree reports whether a lease is released, or was not renewed for its duration since it was first read.
func (y *layout) isFree(lease *coordinationv1.Lease) bool {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return true
	}
	seen, ok := y.observed[lease.Name]
	if !ok || seen.version != lease.ResourceVersion {
		y.observed[lease.Name] = observedLease{version: lease.ResourceVersion, since: y.clock.Now()}
		return false
	}
	duration := y.duration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		duration = max(duration, time.Duration(*seconds)*time.Second)
	}
	return y.clock.Since(seen.since) > duration
}

// read returns the record and its lease. If the lease does not exist, the record contains one shard.
func (y *layout) read(ctx context.Context) (layoutRecord, *coordinationv1.Lease, error) {
	name := y.id + layoutSuffix
	lease, err := y.leases.Get(ctx, name, metav1.GetOptions{})
	if notfound.IsProof(err) {
		return layoutRecord{Shards: 1}, nil, nil
	}
	if err != nil {
		return layoutRecord{}, nil, fmt.Errorf("get lease %s: %w", name, err)
	}
	record := layoutRecord{}
	err = json.Unmarshal([]byte(lease.Annotations[layoutAnnotation]), &record)
	valid := func(shards int) bool { return shards >= 1 && shards <= deployerlib.MaxShards }
	if err != nil || !valid(record.Shards) || slices.ContainsFunc(record.Draining, func(n int) bool { return !valid(n) }) {
		return record, nil, fmt.Errorf("lease %s: metadata.annotations[%s] does not contain the numbers of shards: delete the lease while no replica runs", name, layoutAnnotation)
	}
	return record, lease, nil
}

// write stores a record. The parameter `lease` is the lease that was read, or nil if it does not exist. If another
// process has changed the record in the meantime, write returns false.
func (y *layout) write(ctx context.Context, lease *coordinationv1.Lease, record layoutRecord) (bool, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return false, err
	}
	create := lease == nil
	if create {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: y.id + layoutSuffix}}
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, layoutAnnotation, string(raw))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: y.clock.Now()}
	if create {
		_, err = y.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = y.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if isConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write lease %s: %w", lease.Name, err)
	}
	return true, nil
}
