// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/deployerkit/deployerkit/deployerlib"
)

const (
	// podNameVariable is the environment variable in which the charts store the name of the pod.
	podNameVariable = "MY_POD_NAME"
	// shardOfPod is the default of --shard: the shard is derived from the name of the pod.
	shardOfPod = -1
)

// getShard returns the shard of the process. If the flag --shard is not set, the shard is the ordinal of the pod modulo
// the number of shards, so that a StatefulSet with twice as many replicas as shards has two replicas for each shard. The
// name of the pod is the value of an environment variable, or the host name.
func (f *flags) getShard(podName, hostName string) (deployerlib.Shard, error) {
	if f.shards < 1 || f.shards > deployerlib.MaxShards {
		return deployerlib.Shard{}, fmt.Errorf("--shards %d: must be at least 1 and at most %d", f.shards, deployerlib.MaxShards)
	}
	if f.shard < shardOfPod || f.shard >= f.shards {
		return deployerlib.Shard{}, fmt.Errorf("--shard %d: must be at least 0 and less than --shards, %d", f.shard, f.shards)
	}
	if f.shards == 1 {
		return deployerlib.Shard{}, nil
	}
	if !f.elect {
		return deployerlib.Shard{}, errors.New("--shards: requires leader election, because two processes could process the same item while the number of shards changes")
	}
	if f.shard != shardOfPod {
		return deployerlib.Shard{Index: f.shard, Count: f.shards}, nil
	}
	name := cmp.Or(podName, hostName)
	ordinal, err := strconv.ParseUint(name[strings.LastIndex(name, "-")+1:], 10, 31)
	if err != nil || !strings.Contains(name, "-") {
		return deployerlib.Shard{}, fmt.Errorf("--shard: required, because the name of the pod, %q, does not end with the ordinal of a StatefulSet", name)
	}
	return deployerlib.Shard{Index: int(ordinal) % f.shards, Count: f.shards}, nil
}
