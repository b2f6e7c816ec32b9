// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/deployerkit/deployerkit/controlplane"
)

// auditGroup is the group of the users whose requests are counted.
const auditGroup = "deployerkit:counted"

// auditPolicy logs only the metadata of each completed request of the group.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, userGroups: ["` + auditGroup + `"]}
- {level: None}
`

// Audit reads the API server's audit log, in which it counts the requests of each user.
type Audit struct{ path string }

// NewAudit writes an audit policy to dir and returns the flags of an API server that uses it.
func NewAudit(dir string) (*Audit, map[string][]string, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write audit policy: %w", err)
	}
	a := &Audit{path: filepath.Join(dir, "audit.log")}
	return a, map[string][]string{"audit-policy-file": {policy}, "audit-log-path": {a.path}, "audit-log-mode": {"blocking"}}, nil
}

// User adds an administrator whose requests are counted, and returns its access.
func (a *Audit) User(cp *controlplane.ControlPlane, name string) (*rest.Config, error) {
	return cp.User(name, "system:masters", auditGroup)
}

// Request is a completed request. Watches are logged when they end.
type Request struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestURI string `json:"requestURI"`
}

// IsWrite reports whether the request changes something.
func (r Request) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// Mark returns the end of the log, for Since.
func (a *Audit) Mark() (int64, error) {
	info, err := os.Stat(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	return info.Size(), nil
}

// Since returns the requests that were logged after a mark and that match.
func (a *Audit) Since(mark int64, match func(Request) bool) ([]Request, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := f.Seek(mark, io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var out []Request
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // a line without a line break is still being written
		}
		if err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		var request Request
		if err := json.Unmarshal(bytes.TrimSpace(line), &request); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if match(request) {
			out = append(out, request)
		}
	}
}
