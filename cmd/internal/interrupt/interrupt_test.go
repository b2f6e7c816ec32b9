// SPDX-License-Identifier: Apache-2.0

package interrupt

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchTerminal(t *testing.T) {
	t.Run("a closed terminal ends the process [F80]", func(t *testing.T) {
		broken := make(chan os.Signal, 1)
		watchTerminal(t.Context(), func() bool { return true }, broken)
		if len(broken) != 1 {
			t.Error("it is not reported")
		}
	})
	t.Run("pipes and /dev/null are not terminals [F80]", func(t *testing.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		_ = write.Close()
		if isClosed(read, null) {
			t.Error("the end of a pipe counts as a closed terminal")
		}
	})
}

func TestWatch(t *testing.T) {
	for name, first := range map[string]os.Signal{"a signal": os.Interrupt, "a broken pipe": syscall.SIGPIPE} {
		t.Run(name+" cancels the context, a repeated signal has no effect, and a later one ends the process [F80]", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, broken, code := make(chan os.Signal), make(chan os.Signal), make(chan int, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go watch(signals, broken, cancel, func(c int) { code <- c })
				if first == syscall.SIGPIPE {
					broken <- first
				} else {
					signals <- first
				}
				<-ctx.Done()
				signals <- os.Interrupt // as the go command does
				signals <- syscall.SIGTERM
				<-time.After(repeated)
				synctest.Wait()
				if len(code) != 0 {
					t.Fatal("a repeated signal ended the process")
				}
				signals <- os.Interrupt
				if got := <-code; got != 1 {
					t.Errorf("the exit code is %d", got)
				}
			})
		})
	}
}
