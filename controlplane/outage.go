// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// StopAPIServer lets the API server vanish: for up to two seconds it answers 429, then connections break and new
// ones are refused. Its data stay in etcd.
func (cp *ControlPlane) StopAPIServer() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped || cp.apiServerDown {
		return nil
	}
	if err := cp.env.ControlPlane.GetAPIServer().Stop(); err != nil {
		return fmt.Errorf("stop API server: %w", err)
	}
	cp.apiServerDown = true
	return nil
}

// StartAPIServer brings the API server back: same address, same certificates, same data. It returns once the
// server answers.
func (cp *ControlPlane) StartAPIServer() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return errors.New("start API server: the control plane is stopped")
	}
	if !cp.apiServerDown {
		return nil
	}
	if err := cp.env.ControlPlane.GetAPIServer().Start(); err != nil {
		return fmt.Errorf("start API server: %w", err)
	}
	cp.apiServerDown = false
	return nil
}

// RestartAPIServer is StopAPIServer and StartAPIServer.
func (cp *ControlPlane) RestartAPIServer() error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	return cp.StartAPIServer()
}

// StopEtcd takes the API server its database: it goes on running, reads from its cache may still be answered, and all
// that needs etcd fails or hangs. What was written stays on disk.
func (cp *ControlPlane) StopEtcd() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped || cp.etcdDown {
		return nil
	}
	etcd := cp.env.ControlPlane.Etcd
	dir := etcd.DataDir
	if err := etcd.Stop(); err != nil {
		return fmt.Errorf("stop etcd: %w", err)
	}
	etcd.DataDir, cp.etcdDown = dir, true
	return nil
}

// StartEtcd brings etcd back: same address, same data. It returns once etcd is healthy; the API server finds it by
// itself a moment later.
func (cp *ControlPlane) StartEtcd() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return errors.New("start etcd: the control plane is stopped")
	}
	if !cp.etcdDown {
		return nil
	}
	if err := cp.env.ControlPlane.Etcd.Start(); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	cp.etcdDown = false
	return nil
}

// BackUpEtcd copies the data of etcd into a directory that does not exist yet. Etcd is away meanwhile.
func (cp *ControlPlane) BackUpEtcd(dir string) error {
	if err := cp.StopEtcd(); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(cp.etcdData())); err != nil {
		return fmt.Errorf("back up etcd: %w", err)
	}
	return cp.StartEtcd()
}

// RestoreEtcd replaces the data of etcd by those of a backup, and restarts the API server, as an operator has to do. All
// that was written since the backup is gone, and resource versions begin again where they were then.
func (cp *ControlPlane) RestoreEtcd(dir string) error {
	if err := errors.Join(cp.StopAPIServer(), cp.StopEtcd()); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(cp.etcdData()), os.CopyFS(cp.etcdData(), os.DirFS(dir))); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := cp.StartEtcd(); err != nil {
		return err
	}
	return cp.StartAPIServer()
}

// etcdData returns the directory that etcd keeps its data in.
func (cp *ControlPlane) etcdData() string { return filepath.Join(cp.dir, etcdDataName) }

// etcdDataName is the name of that directory.
const etcdDataName = "etcd"
