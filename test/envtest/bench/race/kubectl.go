// SPDX-License-Identifier: Apache-2.0

package race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Kubectl returns a contender that runs "kubectl apply --server-side -f" with its defaults. It starts a process for
// each item. The discovery cache is warm.
func Kubectl() Contender {
	return Contender{Name: "kubectl apply --server-side", Start: func(_ context.Context, field *Workload) (Runner, error) {
		path := field.ControlPlane.Kubectl()
		if path == "" {
			return nil, errors.New("the binaries of the control plane do not include kubectl")
		}
		dir, err := os.MkdirTemp("", "race-kubectl-")
		if err != nil {
			return nil, fmt.Errorf("make directory: %w", err)
		}
		config, err := field.ControlPlane.WriteKubeconfig(dir)
		return &kubectl{path: path, dir: dir, cache: filepath.Join(os.TempDir(), "race-kubectl-cache"), config: config}, err
	}}
}

type kubectl struct {
	path, dir, cache, config string

	files []string
}

// Load writes a file for each item.
func (k *kubectl) Load(_ context.Context, items []Item) error {
	k.files = nil
	for _, item := range items {
		raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": item.Objects})
		if err != nil {
			return fmt.Errorf("encode %s: %w", item.Owner.Name, err)
		}
		file := filepath.Join(k.dir, item.Owner.Name+".json")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", item.Owner.Name, err)
		}
		k.files = append(k.files, file)
	}
	return nil
}

func (k *kubectl) Run(ctx context.Context) error {
	return Each(ctx, AtOnce, k.files, func(ctx context.Context, _ int, file string) error {
		cmd := exec.CommandContext(ctx, k.path, "--kubeconfig", k.config, "--cache-dir", k.cache, "apply", "--server-side", "-f", file)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func (k *kubectl) Stop() error { return os.RemoveAll(k.dir) }
