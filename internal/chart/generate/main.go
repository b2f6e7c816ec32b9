// SPDX-License-Identifier: Apache-2.0

// Command generate writes the charts of this repository. The argument is the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/deployerkit/deployerkit/internal/chart"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	for name, make := range chart.NewCharts() {
		rights, err := os.ReadFile(filepath.Join(root, "deployers", name, "rbac.yaml"))
		if err != nil {
			return err
		}
		c := make(string(rights))
		files, err := c.RenderFiles()
		if err != nil {
			return fmt.Errorf("chart of %s: %w", name, err)
		}
		dir := filepath.Join(root, "charts", c.Name)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		for path, content := range files {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // a file of the repository
				return err
			}
		}
	}
	return nil
}
