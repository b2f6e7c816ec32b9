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

// openLog returns the writer for the log of a replica.
func (c *replicaSet) openLog(r *replica) (io.WriteCloser, error) {
	if *logs == "" {
		return nopCloser{io.Discard}, nil
	}
	return os.Create(filepath.Join(*logs, r.name+".log"))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// chance is the probability of each fault in a request of the replica in this process.
const chance = 0.03

// newNetwork returns the network between a replica in this process and its API servers. Until the method `stopFaults`
// is called, some requests of the replica fail. The caller must hold the lock.
func (c *replicaSet) newNetwork() *faultnet.Network {
	chaos := faultnet.Chaos(c.seed+uint64(c.started), faultnet.Match{}, chance) //nolint:gosec // not negative
	// The replica may be killed before any fault has occurred.
	chaos.MinHits = 0
	n := faultnet.Start(c.t, chaos)
	if c.calmed {
		n.Disable()
	}
	c.networks = append(c.networks, n)
	return n
}

// stopFaults ends the faults of the network.
func (c *replicaSet) stopFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calmed = true
	for _, n := range c.networks {
		n.Disable()
		c.hits += n.Report().SumHits()
	}
}

// startHere starts a replica in this process. After the replica has been killed, its requests have no effect.
func (c *replicaSet) startHere(r *replica) error {
	out, err := c.openLog(r)
	if err != nil {
		return err
	}
	log := newLog(out)
	if *logs == "" {
		log = newLog(io.Discard)
	}
	network := c.newNetwork()
	cfg := network.Wrap(rest.CopyConfig(cp.Config))
	lock, err := newLock(cfg, c.ns)
	if err != nil {
		return err
	}
	mgr, err := newReplica(cfg, c.ns, lock, network.Transport, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(suiteContext))
	r.kill = func() {
		lock.dead.Store(true)
		network.Kill()
		cancel()
	}
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

// startProcess starts a replica as a separate process. To kill the replica, the crew sends SIGKILL to this process.
func (c *replicaSet) startProcess(r *replica) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := c.openLog(r)
	if err != nil {
		return err
	}
	last := &tailBuffer{next: out}
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
		c.readOutput(r, cmd, stdout, last)
		_ = out.Close()
	}()
	return nil
}

// readOutput reads the output of a process and waits until the process has ended.
func (c *replicaSet) readOutput(r *replica, cmd *exec.Cmd, stdout io.Reader, last *tailBuffer) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text()+"\n" == elected {
			close(r.leads)
		}
	}
	if err := cmd.Wait(); err != nil {
		r.err = fmt.Errorf("%w: %s", err, last.String())
	}
	if text := last.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = append(c.faults, fmt.Sprintf("%s: %s", r.name, text))
	}
}

// tailBuffer is a writer that stores only the last part of the text that is written to it.
type tailBuffer struct {
	next io.Writer

	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (l *tailBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p...)
	if n := len(l.kept) - 16<<10; n > 0 {
		l.kept = bytes.Clone(l.kept[n:])
	}
	return l.next.Write(p)
}

func (l *tailBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.kept)
}
