// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deployerkit/deployerkit/internal/gobuild"
)

// Kubeconfig returns a kubeconfig with administrator rights.
func (cp *ControlPlane) Kubeconfig() []byte { return append([]byte(nil), cp.env.KubeConfig...) }

// WriteKubeconfig writes the result of Kubeconfig to a file in dir and returns the path of the file. If dir is empty,
// WriteKubeconfig uses a directory that Stop removes.
func (cp *ControlPlane) WriteKubeconfig(dir string) (string, error) {
	if dir == "" {
		dir = cp.dir
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, cp.env.KubeConfig, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

// Kubectl returns the path of kubectl, in the version of the API server. It returns "" if the binaries do not include
// kubectl.
func (cp *ControlPlane) Kubectl() string {
	if len(gobuild.ListMissing(cp.assets, []string{kubectlName})) > 0 {
		return ""
	}
	return filepath.Join(cp.assets, kubectlName)
}

// AddUser adds a user with the given name and groups, and returns a config for this user. The user has only the rights
// that RBAC grants to this name and these groups.
func (cp *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	user, err := cp.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}
