// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/faultnet/hostile"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/targets"
)

// causes contains, for each alert, a function that starts a program and causes the condition of the alert. The function
// that it returns, if any, is called before each scrape, to keep the condition up.
var causes = map[string]func(s *scene) (act func(i int)){
	"DeployerDown": func(s *scene) func(int) {
		s.start(mockProgram, "--leader-elect=false")
		return func(i int) {
			if i == 3 {
				s.stop()
			}
		}
	},
	"DeployerWithoutLeader": func(s *scene) func(int) {
		must(s.t, s.client.Create(s.t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "held"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("ended-process"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()}, AcquireTime: &metav1.MicroTime{Time: time.Now()},
			},
		}))
		s.start(mockProgram, "--leader-election-id=held", "--leader-election-namespace="+s.namespace)
		return nil
	},
	"DeployerRunsFail": func(s *scene) func(int) {
		s.start(mockProgram, "--leader-elect=false")
		return func(int) { s.deployMock("Failed") }
	},
	"DeployerRunsSlow": func(s *scene) func(int) {
		s.handOutEarlier(20 * time.Minute)
		s.start(mockProgram, "--leader-elect=false")
		return func(int) { s.deployMock("Succeeded") }
	},
	"DeployerRunStuck": func(s *scene) func(int) {
		s.handOutEarlier(2 * time.Hour)
		s.start(mockProgram, "--leader-elect=false")
		s.waitForPhase(s.deployMock("Progressing"), lsv1alpha1.DeployItemPhases.Progressing)
		return nil
	},
	"DeployerBacklog": func(s *scene) func(int) {
		for range 60 {
			s.deployMock("Succeeded")
		}
		s.start(mockProgram, "--leader-elect=false", "--workers=1", "LS_RESOURCE_CLIENT_QPS=2", "LS_RESOURCE_CLIENT_BURST=1")
		return nil
	},
	"DeployerRetries": func(s *scene) func(int) {
		s.start(mockProgram, "--leader-elect=false")
		return func(int) { s.deployMock("Succeeded", withTarget("missing")) }
	},
	"DeployerFight": func(s *scene) func(int) {
		s.createTarget("cluster", s.cp.Kubeconfig())
		s.start(manifestProgram, "--leader-elect=false", "--allow-private-hosts")
		di := s.deployManifest("cluster")
		s.waitForPhase(di, lsv1alpha1.DeployItemPhases.Succeeded)
		return func(i int) { s.setColor(di, fmt.Sprint(i)) }
	},
	"DeployerTargetDown": func(s *scene) func(int) {
		s.createTarget("cluster", newKubeconfig(s, &rest.Config{Host: "https://" + findFreeAddress(s.t), BearerToken: "token"}))
		s.start(manifestProgram, "--leader-elect=false", "--allow-private-hosts")
		s.deployManifest("cluster")
		return nil
	},
	"DeployerTargetLimit": func(s *scene) func(int) {
		s.startWithHostileTarget(nil, hostile.AddGroups(2000, true))
		return nil
	},
	"DeployerBudgetExhausted": func(s *scene) func(int) {
		s.startWithHostileTarget([]string{targets.GetLimitFlag("Reading") + "=8Mi"}, hostile.When(hostile.IsWrite, stallAfter(1<<20)))
		return nil
	},
	"DeployerAPIErrors": func(s *scene) func(int) {
		network := faultnet.Start(s.t, faultnet.Scenario{Rules: []faultnet.Rule{
			{Match: faultnet.Match{Verb: faultnet.WriteVerb}, Times: faultnet.Always, Fault: faultnet.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
		}})
		s.writeKubeconfig(network.Proxy(s.cp.Config))
		s.start(mockProgram, "--leader-elect=false")
		return func(int) { s.deployMock("Succeeded") }
	},
	"DeployerMissingRights": func(s *scene) func(int) {
		user, err := s.cp.AddUser("reader")
		must(s.t, err)
		must(s.t, s.client.Create(s.t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"landscaper.gardener.cloud"}, Resources: []string{"deployitems", "targets", "contexts"}, Verbs: []string{"get", "list", "watch"},
			}},
		}))
		must(s.t, s.client.Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "reader"}},
		}))
		s.writeKubeconfig(user)
		s.start(mockProgram, "--leader-elect=false")
		return func(int) { s.deployMock("Succeeded") }
	},
	"DeployerPanics": func(s *scene) func(int) {
		s.start(faultyProgram, "--leader-elect=false")
		return func(int) { s.deployFaulty("panic") }
	},
	"DeployerIgnoresCancellation": func(s *scene) func(int) {
		s.start(faultyProgram, "--leader-elect=false")
		// On a busy machine, the timeout of an item can pass before its call begins.
		return func(int) { s.deployFaulty("hang", withTimeout(time.Second)) }
	},
}

// handOutEarlier makes all jobs appear to have been handed out before now.
func (s *scene) handOutEarlier(before time.Duration) {
	s.ls = landscapertest.NewLandscaper(s.client, landscapertest.LandscaperOptions{DeployerType: true, Clock: clocktesting.NewFakePassiveClock(time.Now().Add(-before))})
}

// writeKubeconfig makes the program of the scene use the given access instead of that of the administrator.
func (s *scene) writeKubeconfig(cfg *rest.Config) {
	s.t.Helper()
	s.world = &world{cp: s.cp, client: s.client, programs: s.programs, kubeconfig: filepath.Join(s.t.TempDir(), "kubeconfig")}
	must(s.t, os.WriteFile(s.kubeconfig, newKubeconfig(s, cfg), 0o600))
}

// deployFaulty deploys an item of the faulty deployer.
func (s *scene) deployFaulty(defect string, changes ...change) {
	s.t.Helper()
	s.deploy("example.org/faulty", map[string]any{"apiVersion": "example.org/v1", "kind": "Config", "defect": defect}, changes...)
}

func newKubeconfig(s *scene, cfg *rest.Config) []byte {
	s.t.Helper()
	kubeconfig, err := faultnet.EncodeKubeconfig(cfg)
	must(s.t, err)
	return kubeconfig
}

// startWithHostileTarget starts the manifest deployer with an item for a hostile target.
func (s *scene) startWithHostileTarget(args []string, behaviours ...hostile.Behaviour) {
	s.t.Helper()
	server := hostile.New(behaviours...)
	s.t.Cleanup(server.Close)
	s.createTarget("cluster", server.Kubeconfig("token"))
	s.start(manifestProgram, append(args, "--leader-elect=false", "--allow-private-hosts")...)
	s.deployManifest("cluster")
}

// stallAfter sends a response of the given size, but never ends it.
func stallAfter(size int) hostile.Behaviour {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+strings.Repeat("x", size))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-hostile.ServerClosed(r):
			}
		})
	}
}
