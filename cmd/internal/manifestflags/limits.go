// SPDX-License-Identifier: Apache-2.0

package manifestflags

import (
	"errors"
	"math"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deployerkit/deployerkit/targets"
)

// addLimits registers a flag for each limit. A limit whose flag is not given stays zero, which stands for its default.
func addLimits(fs *pflag.FlagSet, l *targets.Limits) {
	size := func(option string, limit *int64, usage string) { fs.Var((*size)(limit), nameOf(option), usage) }
	count := func(option string, limit *int, usage string) { fs.IntVar(limit, nameOf(option), 0, usage) }
	size("Object", &l.Object, "size of an answer of a target about one object, and of an event of a watch (default 8Mi)")
	size("Page", &l.Page, "size of an answer with a page of a list (default 8Mi)")
	fs.Int64Var(&l.PageSize, nameOf("PageSize"), 0, "number of objects on a page of a list (default 500)")
	size("List", &l.List, "size of all pages of a list, and of the first events of a watch (default 64Mi)")
	size("Discovery", &l.Discovery, "size of an answer about the kinds of a target (default 8Mi)")
	count("Groups", &l.Groups, "number of versions of API groups that a target may have (default 1000)")
	count("Requests", &l.Requests, "number of requests of one target at a time, without watches (default 32)")
	size("Reading", &l.Reading, "size of the large answers that are being read, of all targets together (default 32Mi)")
	size("Decoding", &l.Decoding, "memory that decoding answers may take, of all targets together (default 96Mi)")
	count("WatchObjects", &l.WatchObjects, "number of objects that a watch may begin with (default 20000)")
	count("WatchEvents", &l.WatchEvents, "number of events per second that a watch may bring for long (default 1000)")
	size("WatchBytes", &l.WatchBytes, "size of the events per second that a watch may bring for long (default 4Mi)")
}

func nameOf(option string) string { return strings.TrimPrefix(targets.FlagOf(option), "--") }

// size is a flag with a number of bytes, such as 8Mi.
type size int64

// String is empty for the default.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return resource.NewQuantity(int64(*s), resource.BinarySI).String()
}

// Set reads a quantity.
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

// Type is for the help text.
func (s *size) Type() string { return "size" }
