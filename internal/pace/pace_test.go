// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/deployerkit/deployerkit/internal/pace"
)

func TestApply(t *testing.T) {
	t.Run("a duration below one second is raised, with one warning that names the option [F67]", func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		limit := &pace.Limit{}
		for given, want := range map[time.Duration]time.Duration{
			1: time.Second, time.Second - 1: time.Second, time.Second: time.Second, time.Hour: time.Hour, 0: 0, -1: -1,
		} {
			if got := limit.Apply(log, "ResyncAfter", given); got != want {
				t.Errorf("%s became %s, want %s", given, got, want)
			}
		}
		if len(lines) != 1 || !strings.Contains(lines[0], `"option"="ResyncAfter"`) {
			t.Errorf("got the warnings %q, want one that names ResyncAfter", lines)
		}
		limit.Apply(log, "Resync", 1)
		if len(lines) != 2 {
			t.Errorf("got the warnings %q, want another one for another option", lines)
		}
	})
}
