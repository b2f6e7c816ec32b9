// SPDX-License-Identifier: Apache-2.0

// Package rbac_test runs each deployer with only the rights in its rbac.yaml. The API server writes an audit log, so a
// spec can check which requests were rejected and which rights no request used. Another spec makes all kinds of
// requests fail, with responses that quote the requests. It then searches all outputs of the deployers for secrets.
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
	auditLog string // path of the audit log
)

// audited is the group of the users whose requests are recorded in the audit log. The group has no rights.
const audited = "deployers-of-the-specs"

// auditPolicy logs the user, verb and resource of each request, but no content of requests or responses.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "userGroups": ["` + audited + `"]}, {"level": "None"}]}`

func TestRBAC(t *testing.T) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		t.Fatal(err)
	}
	world.RunWithLog(t, "rbac", newVerboseLogger())
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
