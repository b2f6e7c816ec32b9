// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

func TestShardOfProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		args  []string
		pod   string
		want  deployerlib.Shard
		error string
	}{
		"no shards by default [Sh2]":                         {pod: "x-3"},
		"one shard is no shard [Sh2]":                        {args: []string{"--shards=1"}, pod: "x-3"},
		"the ordinal of the pod [Sh2]":                       {args: []string{"--shards=4"}, pod: "x-4-shards-3", want: deployerlib.Shard{Index: 3, Count: 4}},
		"the ordinal of a standby [Sh2]":                     {args: []string{"--shards=4"}, pod: "x-4-shards-10", want: deployerlib.Shard{Index: 2, Count: 4}},
		"a flag instead of the ordinal [Sh2]":                {args: []string{"--shards=4", "--shard=0"}, pod: "x-3", want: deployerlib.Shard{Index: 0, Count: 4}},
		"a pod without an ordinal [Sh2]":                     {args: []string{"--shards=4"}, pod: "x-5f-abcde", error: `--shard: required, because the name of the pod, "x-5f-abcde"`},
		"a pod whose name is a number [Sh2]":                 {args: []string{"--shards=4"}, pod: "7", error: "--shard: required"},
		"no shards at all [Sh2]":                             {args: []string{"--shards=0"}, error: "--shards 0: must be at least 1 and at most 100"},
		"too many shards [Sh2]":                              {args: []string{"--shards=101"}, error: "--shards 101"},
		"a shard that does not exist [Sh2]":                  {args: []string{"--shards=4", "--shard=4"}, error: "--shard 4: must be at least 0 and less than --shards, 4"},
		"shards without leader election [Sh2]":               {args: []string{"--shards=4", "--shard=1", "--leader-elect=false"}, error: "--shards: requires leader election"},
		"one shard without leader election is allowed [Sh2]": {args: []string{"--leader-elect=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(podNameVariable, tc.pod)
			args, err := parseArgs(t, newProgram(), tc.args...)
			if tc.error != "" {
				if err == nil || !strings.Contains(err.Error(), tc.error) {
					t.Fatalf("want an error with %q, got %v", tc.error, err)
				}
				return
			}
			if err != nil || args.Shard != tc.want {
				t.Errorf("want %+v, got %+v, %v", tc.want, args.Shard, err)
			}
		})
	}
}

func TestLeaseOfShard(t *testing.T) {
	t.Run("each shard has a lease of its own, whose name contains the number of shards [Sh3]", func(t *testing.T) {
		for want, shard := range map[string]deployerlib.Shard{mock.Name: {}, mock.Name + "-2-of-4": {Index: 2, Count: 4}, mock.Name + "-2-of-3": {Index: 2, Count: 3}} {
			args := mock.Args(nil)
			args.Shard = shard
			args.Default()
			o := Options{}
			o.setDefaults(&args)
			if o.Election.ID != want || o.Election.baseID != mock.Name {
				t.Errorf("%+v: want the lease %s, got %s, derived from %s", shard, want, o.Election.ID, o.Election.baseID)
			}
			if r := o.newRegistration(&args); r.Shard != shard.Index || r.Shards != shard.Count {
				t.Errorf("%+v: want the shard in the registration, got %+v", shard, r)
			}
		}
	})
	t.Run("managers with shards and without election are an error [Sh2]", func(t *testing.T) {
		args := mock.Args(nil)
		args.Shard = deployerlib.Shard{Count: 2}
		_, _, err := NewManagers(Options{Host: &rest.Config{}, Election: Election{Disabled: true}}, &args)
		if err == nil || !strings.Contains(err.Error(), "several shards require leader election") {
			t.Errorf("want an error about the election, got %v", err)
		}
	})
}

func TestShardsWithoutLeasePermissions(t *testing.T) {
	t.Run("a replica with several shards never works without a lease, and is not ready [Sh7]", func(t *testing.T) {
		lease := &fakeLease{get: forbidden}
		l, clk := newFakeLock(lease, false)
		l.layout.shards = 2
		for range 5 {
			if _, _, err := l.Get(t.Context()); err == nil || l.checkLease() == nil {
				t.Fatalf("want an error, and not ready, got %v, %v", err, l.checkLease())
			}
			clk.Step(15 * time.Second)
		}
	})
	t.Run("a replica without shards works although it may read only its own lease [Sh7]", func(t *testing.T) {
		l, _ := newFakeLock(&fakeLease{get: notFound}, false)
		l.layout.leases.(*storeClient).call = func() error { return forbidden }
		if _, _, err := l.Get(t.Context()); err == nil {
			t.Fatal("want that the lease does not exist, got nil")
		}
		if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil || l.checkLease() != nil {
			t.Errorf("Create(...): want no error, and ready, got %v, %v", err, l.checkLease())
		}
		l.layout.shards = 2
		if _, _, err := l.Get(t.Context()); err == nil {
			t.Error("with shards: want an error, got nil")
		}
	})
	t.Run("a record that cannot be read is an error that names the lease [Sh7]", func(t *testing.T) {
		for _, content := range []string{"", "x", `{"shards":0}`, `{"shards":2,"draining":[101]}`} {
			l, _ := newFakeLock(&fakeLease{get: notFound}, false)
			store := l.layout.leases.(*storeClient).store
			if _, err := l.layout.write(t.Context(), nil, layoutRecord{Shards: 2}); err != nil {
				t.Fatal(err)
			}
			store.leases["x-shards"].Annotations[layoutAnnotation] = content
			_, _, err := l.Get(t.Context())
			if err == nil || !strings.Contains(err.Error(), "lease x-shards: metadata.annotations[deployerkit.dev/shards] does not contain the numbers of shards") {
				t.Errorf("%q: want an error about the annotation, got %v", content, err)
			}
		}
	})
}

func TestLeaderOfOutdatedShard(t *testing.T) {
	t.Run("a leader whose number of shards is no longer current neither renews nor releases its lease [Sh4]", func(t *testing.T) {
		lease := &fakeLease{}
		l, _ := newFakeLock(lease, false)
		l.layout.shards, l.leads = 2, true
		if _, err := l.layout.write(t.Context(), nil, layoutRecord{Shards: 3, Draining: []int{2}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatalf("Update(...): the change is noticed after this renewal, got %v", err)
		}
		before := lease.requests
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); !errors.Is(err, errOutdated) {
			t.Errorf("Update(...): want errOutdated, got %v", err)
		}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || lease.requests != before {
			t.Errorf("want no further request, got %d, %v", lease.requests-before, err)
		}
	})
}
