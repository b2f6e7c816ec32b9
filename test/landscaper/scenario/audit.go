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

// auditPolicy logs the metadata of each completed request by a user of the group.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, userGroups: ["` + auditGroup + `"]}
- {level: None}
`

// Audit counts the requests of users in the API server's audit log.
type Audit struct{ path string }

// NewAudit writes an audit policy to dir. It returns the flags for an API server that uses the policy.
func NewAudit(dir string) (*Audit, map[string][]string, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write audit policy: %w", err)
	}
	a := &Audit{path: filepath.Join(dir, "audit.log")}
	return a, map[string][]string{"audit-policy-file": {policy}, "audit-log-path": {a.path}, "audit-log-mode": {"blocking"}}, nil
}

// CreateUser creates an administrator whose requests are counted, and returns a config for that user.
func (a *Audit) CreateUser(cp *controlplane.ControlPlane, name string) (*rest.Config, error) {
	return cp.AddUser(name, "system:masters", auditGroup)
}

// Request is a completed request. A watch is complete when it ends.
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

// IsWrite reports whether the request may change something.
func (r Request) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// GetSize returns the current size of the log.
func (a *Audit) GetSize() (int64, error) {
	info, err := os.Stat(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("audit log: %w", err)
	}
	return info.Size(), nil
}

// ListRequests returns the requests in the part of the log after the given size. It returns only requests for which
// `match` returns true.
func (a *Audit) ListRequests(size int64, match func(Request) bool) ([]Request, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	if _, err := f.Seek(size, io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var out []Request
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // a line without a line break is not complete yet
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
