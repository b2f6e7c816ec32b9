// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/faultnet"
)

// output is where a replica logs to.
func (c *crew) output(r *replica) (io.WriteCloser, error) {
	if *logs == "" {
		return nopCloser{io.Discard}, nil
	}
	return os.Create(filepath.Join(*logs, r.name+".log"))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// chance is how probable each fault is for a request of a replica in this process.
const chance = 0.03

// network returns the network between a replica in this process and its API servers. Some of its requests fail, until
// calm. The caller holds the lock.
func (c *crew) network() *faultnet.Network {
	chaos := faultnet.Chaos(c.seed+uint64(c.started), faultnet.Match{}, chance) //nolint:gosec // not negative
	chaos.AtLeast = 0                                                           // it may not live long
	n := faultnet.Start(c.t, chaos)
	if c.calmed {
		n.Disarm()
	}
	c.networks = append(c.networks, n)
	return n
}

// calm ends the faults of the network.
func (c *crew) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calmed = true
	for _, n := range c.networks {
		n.Disarm()
		c.hits += n.Report().Hits()
	}
}

// startHere starts a replica in this process. After a kill none of its requests takes effect.
func (c *crew) startHere(r *replica) error {
	out, err := c.output(r)
	if err != nil {
		return err
	}
	log := newLog(out)
	if *logs == "" {
		log = newLog(io.Discard)
	}
	network := c.network()
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
