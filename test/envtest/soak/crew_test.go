// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/deployerlib/deployertest"
)

// replica is a running replica: a goroutine of this process, or a process of its own.
type replica struct {
	name  string
	leads chan struct{} // closed when it was elected
	ended chan struct{} // closed when nothing of it is left
	err   error         // why it ended
	kill  func()
	// killed: it did not end by itself.
	killed atomic.Bool
}

// crew keeps two replicas running, as a Deployment does.
type crew struct {
	ns   string
	path string // of a kubeconfig

	mu      sync.Mutex
	slots   [2]*replica
	started int
	over    bool
	faults  []string
	running sync.WaitGroup

	kills, losses int
}

// newCrew starts the replicas.
func newCrew(ns, path string) *crew {
	c := &crew{ns: ns, path: path}
	for slot := range c.slots {
		c.running.Go(func() { c.keep(slot) })
	}
	return c
}

// keep starts a replica in a slot again and again.
func (c *crew) keep(slot int) {
	for {
		r := c.next(slot)
		if r == nil {
			return
		}
		<-r.ended
		if !c.note(r) {
			pause(suiteContext, restartDelay)
		}
	}
}

// next starts a replica, in the first slot in this process, in the second as a process. nil: no more.
func (c *crew) next(slot int) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	c.started++
	r := &replica{name: fmt.Sprintf("replica-%03d", c.started), leads: make(chan struct{}), ended: make(chan struct{})}
	c.slots[slot] = r
	start := c.startHere
	if slot == 1 {
		start = c.startProcess
	}
	if err := start(r); err != nil {
		r.err = err
		close(r.ended)
	}
	return r
}

// restartDelay is how long nothing is tried after a replica could not start.
const restartDelay = time.Second

// note looks how a replica ended. One may always lose its lease, and cannot start without an API server: then note
// returns false.
func (c *crew) note(r *replica) (started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over || r.killed.Load():
	case r.err != nil && strings.Contains(r.err.Error(), "leader election lost"):
		c.losses++
	case r.err != nil && strings.Contains(r.err.Error(), cannotStart):
		return false
	default:
		c.faults = append(c.faults, fmt.Sprintf("%s ended by itself: %v", r.name, r.err))
	}
	return true
}

// output is where a replica logs to.
func (c *crew) output(r *replica) (io.WriteCloser, error) {
	if *logs == "" {
		return nopCloser{io.Discard}, nil
	}
	return os.Create(filepath.Join(*logs, r.name+".log"))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// startHere starts a replica in this process. Killed, its requests go nowhere from that moment on.
func (c *crew) startHere(r *replica) error {
	out, err := c.output(r)
	if err != nil {
		return err
	}
	log := newLog(out)
	if *logs == "" {
		log = newLog(io.Discard)
	}
	network := deployertest.NewNetwork()
	mgr, err := newReplica(network.Wrap(rest.CopyConfig(cp.Config)), c.ns, network.Transport, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(suiteContext))
	r.kill = func() { network.Kill(); cancel() }
	go func() {
		select {
		case <-mgr.Elected():
			close(r.leads)
		case <-ctx.Done():
		}
	}()
	go func() {
		defer close(r.ended)
		defer cancel()
		r.err = mgr.Start(ctx)
		_ = out.Close()
	}()
	return nil
}

// startProcess starts a replica as a process. Killed, it gets SIGKILL.
func (c *crew) startProcess(r *replica) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := c.output(r)
	if err != nil {
		return err
	}
	last := &lastWords{next: out}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), kubeconfigEnv+"="+c.path, namespaceEnv+"="+c.ns)
	cmd.Stderr = last
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.kill = func() { _ = cmd.Process.Kill() }
	go func() {
		defer close(r.ended)
		c.follow(r, cmd, stdout, last)
		_ = out.Close()
	}()
	return nil
}

// follow reads what a process says and waits for its end.
func (c *crew) follow(r *replica, cmd *exec.Cmd, stdout io.Reader, last *lastWords) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text()+"\n" == elected {
			close(r.leads)
		}
	}
	if err := cmd.Wait(); err != nil {
		r.err = fmt.Errorf("%w: %s", err, last.text())
	}
	if text := last.text(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = append(c.faults, fmt.Sprintf("%s: %s", r.name, text))
	}
}

// lastWords keeps the end of what is written.
type lastWords struct {
	next io.Writer

	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p...)
	if n := len(l.kept) - 16<<10; n > 0 {
		l.kept = bytes.Clone(l.kept[n:])
	}
	return l.next.Write(p)
}

func (l *lastWords) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.kept)
}

// leader is the replica that leads; nil when none does.
func (c *crew) leader() *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.slots {
		if r != nil && isClosed(r.leads) && !isClosed(r.ended) {
			return r
		}
	}
	return nil
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// killLeader kills the leader, once there is one.
func (c *crew) killLeader(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if r := c.leader(); r != nil {
			r.killed.Store(true)
			r.kill()
			c.mu.Lock()
			c.kills++
			c.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// end stops all replicas for good and waits for their end.
func (c *crew) end() {
	c.mu.Lock()
	c.over = true
	all := c.slots
	c.mu.Unlock()
	for _, r := range all {
		if r != nil && r.kill != nil {
			r.kill()
		}
	}
	c.running.Wait()
}

// healthy tells that both replicas run and one of them leads.
func (c *crew) healthy() error {
	if c.leader() == nil {
		return errors.New("nobody leads")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.slots {
		if isClosed(r.ended) {
			return fmt.Errorf("%s has ended: %w", r.name, r.err)
		}
	}
	return nil
}
