// SPDX-License-Identifier: Apache-2.0

// Package pace raises durations that would repeat the work on an item too often. An item, a handler or a hook can set
// such a duration, for example as the interval of a timer.
package pace

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Min is the shortest duration.
const Min = time.Second

// Limit raises durations to Min, and logs one warning for each option. The zero value is ready to use. A Limit is safe
// for concurrent use.
type Limit struct{ warned sync.Map }

// Apply returns d, or Min if d is positive but shorter. In the latter case, it logs a warning that names the option,
// unless it has already logged a warning for this option. Zero and negative values have other meanings, so Apply
// returns them unchanged.
func (l *Limit) Apply(log logr.Logger, option string, d time.Duration) time.Duration {
	if d <= 0 || d >= Min {
		return d
	}
	if _, warned := l.warned.LoadOrStore(option, true); !warned {
		log.Info("Warning: a duration is too short, so the minimum is used instead", "option", option, "duration", d.String(), "minimum", Min.String())
	}
	return Min
}
