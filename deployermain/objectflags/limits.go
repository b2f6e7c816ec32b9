// SPDX-License-Identifier: Apache-2.0

package objectflags

import (
	"errors"
	"math"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deployerkit/deployerkit/targets"
)

// addLimits registers a flag for each limit. If a flag is not set, the limit remains zero, which means the default.
func addLimits(fs *pflag.FlagSet, l *targets.Limits) {
	size := func(option string, limit *int64, usage string) { fs.Var((*size)(limit), flagName(option), usage) }
	count := func(option string, limit *int, usage string) { fs.IntVar(limit, flagName(option), 0, usage) }
	size("Object", &l.Object, "maximum size of a response that contains one object, and of one watch event (default 8Mi)")
	size("Page", &l.Page, "maximum size of a response that contains one page of a list (default 8Mi)")
	fs.Int64Var(&l.PageSize, flagName("PageSize"), 0, "number of objects per page of a list (default 500)")
	size("List", &l.List, "maximum total size of all pages of a list, and of the existing objects at the beginning of a watch (default 64Mi)")
	size("Discovery", &l.Discovery, "maximum size of a discovery response (default 8Mi)")
	count("Groups", &l.Groups, "maximum number of API group versions that a target may serve (default 1000)")
	count("Requests", &l.Requests, "maximum number of concurrent requests to one target, not counting watches (default 32)")
	size("Reading", &l.Reading, "maximum total size of large responses that are read at the same time, for all targets together (default 32Mi)")
	size("Decoding", &l.Decoding, "maximum memory for responses that are decoded at the same time, for all targets together (default 96Mi)")
	count("WatchObjects", &l.WatchObjects, "maximum number of existing objects at the beginning of a watch (default 20000)")
	count("WatchEvents", &l.WatchEvents, "maximum sustained number of events per second in one watch (default 1000)")
	size("WatchBytes", &l.WatchBytes, "maximum sustained number of bytes per second in one watch (default 4Mi)")
}

func flagName(option string) string { return strings.TrimPrefix(targets.GetLimitFlag(option), "--") }

// size is a flag value that is a number of bytes, such as 8Mi.
type size int64

// String returns the size, or "" if it is zero.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return resource.NewQuantity(int64(*s), resource.BinarySI).String()
}

// Set parses a quantity.
func (s *size) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return err
	}
	if q.Sign() <= 0 || q.CmpInt64(math.MaxInt32) > 0 {
		return errors.New("must be positive and less than 2Gi")
	}
	*s = size(q.Value())
	return nil
}

// Type returns the type of the value for the help text.
func (s *size) Type() string { return "size" }
