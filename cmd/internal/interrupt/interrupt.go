// SPDX-License-Identifier: Apache-2.0

// Package interrupt ends a command when its user or its terminal asks it to end.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// repeated is the time after the first signal in which further signals count as the same request. A terminal sends
// Ctrl-C to all processes in the foreground, and the go command (go tool) passes the signal on once more.
const repeated = 2 * time.Second

// terminalPoll is the interval at which a command checks whether its terminal was closed.
const terminalPoll = time.Second

// NewContext returns a context that is cancelled by Ctrl-C, SIGTERM, a closed terminal, and a write to a pipe that
// nothing reads. The command then cleans up and returns. A further signal after two seconds ends the process at once,
// with code 1. A signal that the parent process ignores, as nohup does with SIGHUP, stays ignored.
func NewContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) {
		go watchTerminal(ctx, func() bool { return isClosed(os.Stdin, os.Stdout, os.Stderr) }, broken)
	}
	go watch(signals, broken, cancel, os.Exit)
	return ctx
}

// watchTerminal sends a signal to `broken` when the terminal is closed.
func watchTerminal(ctx context.Context, closed func() bool, broken chan<- os.Signal) {
	tick := time.NewTicker(terminalPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if closed() {
			select {
			case broken <- syscall.SIGHUP:
			case <-ctx.Done():
			}
			return
		}
	}
}

// watch calls the function `cancel` at the first signal, and the function `exit` at a further signal later. After the
// first signal, it ignores broken pipes.
func watch(signals, broken <-chan os.Signal, cancel func(), exit func(code int)) {
	select {
	case <-signals:
	case <-broken:
	}
	cancel()
	for same := time.After(repeated); ; {
		select {
		case <-same:
			same = nil
		case <-signals:
			if same == nil {
				exit(1)
				return
			}
		}
	}
}
