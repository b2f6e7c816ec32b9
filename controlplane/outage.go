// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// StopAPIServer stops the API server. The server first responds with status 429 for up to two seconds. After that, open
// connections break, and new connections are refused. The data stays in etcd.
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

// StartAPIServer starts the API server again, with the same address, certificates and data as before. It returns when
// the server responds to requests.
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

// RestartAPIServer calls StopAPIServer and StartAPIServer.
func (cp *ControlPlane) RestartAPIServer() error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	return cp.StartAPIServer()
}

// StopEtcd stops etcd. The API server continues to run and may respond to reads from its cache. All other requests fail
// or hang. The data stays on disk.
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

// StartEtcd starts etcd again, with the same address and data. It returns when etcd is healthy. The API server
// reconnects shortly afterwards.
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

// BackUpEtcd stops etcd, copies its data to a directory, and starts etcd again. The directory must not exist yet.
func (cp *ControlPlane) BackUpEtcd(dir string) error {
	if err := cp.StopEtcd(); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(cp.etcdDataDir())); err != nil {
		return fmt.Errorf("back up etcd: %w", err)
	}
	return cp.StartEtcd()
}

// RestoreEtcd replaces the data of etcd with a backup. It also restarts the API server, as an operator must do after a
// restore. Writes that were made after the backup are lost. Resource versions continue with those of the backup.
func (cp *ControlPlane) RestoreEtcd(dir string) error {
	if err := errors.Join(cp.StopAPIServer(), cp.StopEtcd()); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(cp.etcdDataDir()), os.CopyFS(cp.etcdDataDir(), os.DirFS(dir))); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := cp.StartEtcd(); err != nil {
		return err
	}
	return cp.StartAPIServer()
}

// EtcdURL returns the address of etcd, such as http://127.0.0.1:2379. Tests can write objects there in the form in which
// an earlier version stored them.
func (cp *ControlPlane) EtcdURL() string { return cp.env.ControlPlane.Etcd.URL.String() }

// etcdDataDir returns the data directory of etcd.
func (cp *ControlPlane) etcdDataDir() string { return filepath.Join(cp.dir, etcdDataName) }

// etcdDataName is the name of the data directory of etcd.
const etcdDataName = "etcd"
