// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance/internal/process"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// env is the environment of the checks of one revision: a cluster, the running subject, and the violations of rules
// found so far.
type env struct {
	subject  Subject
	revision contract.Revision

	own        *controlplane.ControlPlane // nil if the caller provided the cluster
	config     *rest.Config
	kubeconfig string
	client     client.Client // reads from the API server, not from a cache; writes with the field manager of Landscaper
	watcher    client.WithWatch
	ls         *landscapertest.Landscaper
	deployer   *process.Process

	skipReason string // why no check applies in this environment; "" if checks apply
	judged     ruleResults
}

// openEnv connects to the cluster or starts one. It then starts the subject and waits until the subject has processed
// an item.
func openEnv(ctx context.Context, s Subject, revision contract.Revision) (*env, error) {
	e := &env{subject: s, revision: revision, judged: ruleResults{faults: map[string][]string{}}}
	if err := e.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s revision: %w", revision, err), e.close())
	}
	return e, nil
}

func (e *env) open(ctx context.Context) error {
	if err := e.findCluster(ctx); err != nil {
		return err
	}
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	if err := apiextv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("add CustomResourceDefinition types to scheme: %w", err)
	}
	if err := e.createClients(scheme); err != nil {
		return err
	}
	if e.own == nil {
		if e.skipReason, err = e.checkSupported(ctx); e.skipReason != "" || err != nil {
			return err
		}
	}
	return e.start(ctx)
}

// findCluster connects to the caller's cluster. If there is none, it starts a control plane with Landscaper's
// CustomResourceDefinitions of the revision.
func (e *env) findCluster(ctx context.Context) error {
	var err error
	if e.kubeconfig = e.subject.Kubeconfig; e.kubeconfig != "" {
		if e.config, err = clientcmd.BuildConfigFromFlags("", e.kubeconfig); err != nil {
			return fmt.Errorf("load kubeconfig: %w", err)
		}
		e.config.QPS = -1
		return nil
	}
	o := controlplane.Options{CRDs: features[e.revision].definitions(), Progress: e.subject.Logs}
	if e.own, err = controlplane.Start(ctx, o); err != nil {
		return err
	}
	e.config = e.own.Config
	e.kubeconfig, err = e.own.WriteKubeconfig("")
	return err
}

// usesJobs reports whether Landscaper requests runs with job IDs in this revision.
func (e *env) usesJobs() bool { return features[e.revision].jobs }

// createClients creates the clients.
func (e *env) createClients(scheme *runtime.Scheme) error {
	c, err := client.NewWithWatch(e.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	e.watcher, e.client = c, client.WithFieldOwner(c, fieldManager)
	e.ls = landscapertest.NewLandscaper(e.client, landscapertest.LandscaperOptions{
		Revision: e.revision, DeployerType: e.usesJobs(),
	})
	return nil
}

// deployItems is the name of the CustomResourceDefinition of deploy items.
const deployItems = "deployitems.landscaper.gardener.cloud"

// checkSupported returns the reason why the CustomResourceDefinitions in the caller's cluster do not support the
// revision. It returns "" if they support it.
func (e *env) checkSupported(ctx context.Context) (string, error) {
	crd := &apiextv1.CustomResourceDefinition{}
	err := e.client.Get(ctx, client.ObjectKey{Name: deployItems}, crd)
	if apierrors.IsNotFound(err) {
		return "", errors.New("the cluster has no CustomResourceDefinition for Landscaper's deploy items")
	}
	if err != nil {
		return "", fmt.Errorf("get definition of deploy items: %w", err)
	}
	if speaks := revisionOf(crd); speaks != e.revision {
		return fmt.Sprintf("the definitions in the cluster are those of the %s revision", speaks), nil
	}
	return "", nil
}

// start starts the subject and waits until it has written to an item.
func (e *env) start(ctx context.Context) error {
	if err := e.startSubject(ctx); err != nil {
		return err
	}
	return e.waitForWrite(ctx)
}

// startSubject starts the subject. The subject then runs until it is stopped or killed.
func (e *env) startSubject(ctx context.Context) error {
	s := e.subject
	if s.Command == nil {
		e.deployer = process.Start(ctx, s.Start, e.config, s.Bounds.Stop)
		return nil
	}
	next, err := process.Exec(s.Command(e.kubeconfig), s.Logs, s.Bounds.Stop)
	if err != nil {
		return err
	}
	e.deployer = next
	return nil
}

// waitForWrite deploys an item and waits until the subject has written to it.
func (e *env) waitForWrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.subject.Bounds.Start)
	defer cancel()
	t, err := newTestContext(ctx, e, false)
	if err != nil {
		return err
	}
	ended := e.deployer.Ended()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	failed := t.do(func(t *testContext) {
		first := t.item("first", e.subject.Valid)
		first.createAndTrigger()
		first.waitFor(t.getBounds().Start, "receive a write from the deployer", func(di item) bool { return len(listOtherManagers(di)) > 0 })
	})
	err = e.deployer.Failure()
	if err == nil && failed != "" {
		err = fmt.Errorf("the deployer does not process items: %s", failed)
	}
	return errors.Join(err, t.ns.close(ctx))
}

// close stops everything that openEnv started. It can also be called after openEnv failed halfway.
func (e *env) close() error {
	var errs []error
	if e.deployer != nil {
		errs = append(errs, e.deployer.Stop())
	}
	if e.own != nil {
		errs = append(errs, e.own.Stop())
	}
	return errors.Join(errs...)
}

// check runs one check and returns its result.
func (e *env) check(ctx context.Context, c Check) Result {
	result := Result{Check: c, Revision: e.revision, Outcome: OutcomeNotApplicable, Evidence: e.skipReason}
	if result.Evidence == "" {
		result.Evidence = e.subject.skipReason(c, e.revision)
	}
	if result.Evidence != "" {
		return result
	}
	begin := time.Now()
	failed, seen := "", ""
	if c.rule != nil {
		failed, seen = e.judged.getResult(c)
	} else {
		failed, seen = e.run(ctx, c)
	}
	result.Took, result.Outcome, result.Evidence = time.Since(begin), OutcomePass, seen
	if failed != "" {
		result.Outcome, result.Fault, result.Evidence = OutcomeFail, failed, failed+"\n"+seen
	}
	return result
}

// run runs a check in its own namespace and cleans up after it.
func (e *env) run(ctx context.Context, c Check) (failed, seen string) {
	t, err := newTestContext(ctx, e, c.alone)
	if err != nil {
		return err.Error(), ""
	}
	failures := []string{t.do(c.run)}
	for _, err := range []error{e.deployer.Failure(), t.ns.close(ctx)} {
		if err != nil {
			failures = append(failures, err.Error())
		}
	}
	failures = slices.DeleteFunc(failures, func(f string) bool { return f == "" })
	return strings.Join(failures, "\n"), t.ns.history.String()
}
