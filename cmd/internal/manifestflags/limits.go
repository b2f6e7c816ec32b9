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

// addLimits registers a flag for each limit. A limit whose flag is not set stays zero, which means its default.
func addLimits(fs *pflag.FlagSet, l *targets.Limits) {
	size := func(option string, limit *int64, usage string) { fs.Var((*size)(limit), nameOf(option), usage) }
	count := func(option string, limit *int, usage string) { fs.IntVar(limit, nameOf(option), 0, usage) }
	size("Object", &l.Object, "maximum size of a response of a target about one object, and of an event of a watch (default 8Mi)")
	size("Page", &l.Page, "maximum size of a response with a page of a list (default 8Mi)")
	fs.Int64Var(&l.PageSize, nameOf("PageSize"), 0, "number of objects per page of a list (default 500)")
	size("List", &l.List, "maximum size of all pages of a list, and of the first events of a watch (default 64Mi)")
	size("Discovery", &l.Discovery, "maximum size of a response about the kinds of a target (default 8Mi)")
	count("Groups", &l.Groups, "maximum number of versions of API groups of a target (default 1000)")
	count("Requests", &l.Requests, "maximum number of concurrent requests to one target, not counting watches (default 32)")
	size("Reading", &l.Reading, "maximum size of the large responses that are being read, of all targets together (default 32Mi)")
	size("Decoding", &l.Decoding, "maximum memory for decoding responses, of all targets together (default 96Mi)")
	count("WatchObjects", &l.WatchObjects, "maximum number of objects with which a watch may begin (default 20000)")
	count("WatchEvents", &l.WatchEvents, "maximum sustained number of events per second of a watch (default 1000)")
	size("WatchBytes", &l.WatchBytes, "maximum sustained size of the events per second of a watch (default 4Mi)")
}

func nameOf(option string) string { return strings.TrimPrefix(targets.FlagOf(option), "--") }

// size is a flag whose value is a number of bytes, such as 8Mi.
type size int64

// String returns "" for the default.
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

// Type returns the type for the help text.
func (s *size) Type() string { return "size" }
