// SPDX-License-Identifier: Apache-2.0

// Package rbac_test runs each deployer with the rights of the rbac.yaml that comes with it, and with no others. The API server keeps an
// audit log, so a spec sees every request as the authorizer saw it: which were refused, and which rights nobody used. Another spec
// looks for secrets in all that the deployers tell, while everything that can fail does so and repeats what was sent.
package rbac_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	cp       *controlplane.ControlPlane
	auditLog string // the file
)

// audited is the group of the users whose requests are in the audit log. It has no rights.
const audited = "deployers-of-the-specs"

// auditPolicy keeps who wanted to do what, and nothing of what was sent.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "userGroups": ["` + audited + `"]}, {"level": "None"}]}`

func TestRBAC(t *testing.T) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		t.Fatal(err)
	}
	world.RunWithLog(t, "rbac", everything())
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	policy := filepath.Join(dir, "policy.json")
	auditLog = filepath.Join(dir, "audit.log")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	cp = world.StartControlPlane(ctx, controlplane.Options{APIServerFlags: map[string][]string{
		"audit-policy-file": {policy}, "audit-log-path": {auditLog},
	}})
})
