// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, lines bytes.Buffer
		h := Start(&out, &lines, func(elapsed time.Duration) string { return "at work, " + elapsed.String() })
		after := func(d time.Duration) {
			timer := time.NewTimer(d)
			<-timer.C
			synctest.Wait()
		}
		after(Interval - time.Second)
		fmt.Fprintln(h, "news")
		after(Interval - time.Second) // the interval began again with the last input, so no line is due yet
		after(Interval)
		after(Interval)
		h.Stop()
		after(2 * Interval)
		fmt.Fprintln(h, "the end")
		if diff := cmp.Diff([]string{"news\nthe end\n", "at work, 9s\nat work, 14s\n"}, []string{out.String(), lines.String()}); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
