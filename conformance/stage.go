// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// stage is where the checks of one revision run: a cluster, the subject at work on it, and what the rules found so far.
type stage struct {
	subject  Subject
	revision contract.Revision

	own        *controlplane.ControlPlane // nil if the caller brought the cluster
	config     *rest.Config
	kubeconfig string
	client     client.Client // reads live; writes as Landscaper
	watcher    client.WithWatch
	ls         *landscapertest.Landscaper
	deployer   *process

	// unfit tells why nothing can be checked here; empty: it can.
	unfit  string
	judged judged
}

// open finds or starts the cluster, starts the subject and waits until it does something.
func open(ctx context.Context, s Subject, revision contract.Revision) (*stage, error) {
	st := &stage{subject: s, revision: revision, judged: judged{faults: map[string][]string{}}}
	if err := st.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s revision: %w", revision, err), st.close())
	}
	return st, nil
}

func (st *stage) open(ctx context.Context) error {
	if err := st.findCluster(ctx); err != nil {
		return err
	}
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	if err := apiextv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("add types of definitions: %w", err)
	}
	if err := st.connect(scheme); err != nil {
		return err
	}
	if st.own == nil {
		if st.unfit, err = st.fits(ctx); st.unfit != "" || err != nil {
			return err
		}
	}
	return st.start(ctx)
}

// findCluster takes the caller's cluster or starts one with the definitions of the revision.
func (st *stage) findCluster(ctx context.Context) error {
	var err error
	if st.kubeconfig = st.subject.Kubeconfig; st.kubeconfig != "" {
		if st.config, err = clientcmd.BuildConfigFromFlags("", st.kubeconfig); err != nil {
			return fmt.Errorf("load kubeconfig: %w", err)
		}
		st.config.QPS = -1
		return nil
	}
	o := controlplane.Options{CRDs: features[st.revision].definitions(), Progress: st.subject.Logs}
	if st.own, err = controlplane.Start(ctx, o); err != nil {
		return err
	}
	st.config = st.own.Config
	st.kubeconfig, err = st.own.KubeconfigFile("")
	return err
}

// connect makes the clients.
func (st *stage) connect(scheme *runtime.Scheme) error {
	c, err := client.NewWithWatch(st.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	st.watcher, st.client = c, client.WithFieldOwner(c, landscaper)
	st.ls = landscapertest.NewLandscaper(st.client, landscapertest.LandscaperOptions{
		Revision: st.revision, DeployerType: features[st.revision].jobs,
	})
	return nil
}

// deployItems is the definition of deploy items.
const deployItems = "deployitems.landscaper.gardener.cloud"

// fits tells whether the definitions of the caller's cluster know the revision.
func (st *stage) fits(ctx context.Context) (string, error) {
	crd := &apiextv1.CustomResourceDefinition{}
	err := st.client.Get(ctx, client.ObjectKey{Name: deployItems}, crd)
	if apierrors.IsNotFound(err) {
		return "", errors.New("the cluster does not know Landscaper's deploy items")
	}
	if err != nil {
		return "", fmt.Errorf("get definition of deploy items: %w", err)
	}
	if speaks := revisionOf(crd); speaks != st.revision {
		return fmt.Sprintf("the cluster's definitions are those of the %s revision", speaks), nil
	}
	return "", nil
}

// start starts the subject and waits until it has written an item: from then on it is at work.
func (st *stage) start(ctx context.Context) error {
	var err error
	if st.deployer, err = launch(ctx, st.subject, st.config, st.kubeconfig); err != nil {
		return err
	}
	return st.awaitWork(ctx)
}

// awaitWork gives the subject an item until it has written it.
func (st *stage) awaitWork(ctx context.Context) error {
	p, err := st.enter(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, st.subject.Bounds.Start)
	defer cancel()
	deployer := st.deployer
	go func() {
		select {
		case <-deployer.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	failed := p.do(ctx, func(p *probe) {
		p.deploy("first", st.subject.Valid)
		p.await(st.subject.Bounds.Start, "first", "written by the deployer", func(di item) bool { return len(strangers(di)) > 0 })
	})
	select {
	case <-deployer.ended:
		return errors.Join(fmt.Errorf("the deployer ended by itself: %w", orUnknown(deployer.err)), p.leave())
	default:
	}
	if failed != "" {
		return errors.Join(fmt.Errorf("the deployer does not take up an item: %s", failed), p.leave())
	}
	return p.leave()
}

// close stops what open started. It may be called on a stage that was not opened entirely.
func (st *stage) close() error {
	var errs []error
	if st.deployer != nil {
		errs = append(errs, st.deployer.stop())
	}
	if st.own != nil {
		errs = append(errs, st.own.Stop())
	}
	return errors.Join(errs...)
}

// check runs one check and tells what it showed.
func (st *stage) check(ctx context.Context, c Check) Result {
	result := Result{Check: c, Revision: st.revision, Outcome: NotApplicable, Seen: st.unfit}
	if result.Seen == "" {
		result.Seen = st.subject.lacks(c, st.revision)
	}
	if result.Seen != "" {
		return result
	}
	begin := time.Now()
	failed, seen := "", ""
	if c.rule != nil {
		failed, seen = st.judged.verdict(c)
	} else {
		failed, seen = st.try(ctx, c)
	}
	result.Took, result.Outcome, result.Seen = time.Since(begin), Pass, seen
	if failed != "" {
		result.Outcome, result.Fault, result.Seen = Fail, failed, failed+"\n"+seen
	}
	return result
}

// try runs a check in a namespace of its own and leaves nothing behind.
func (st *stage) try(ctx context.Context, c Check) (failed, seen string) {
	p, err := st.enter(ctx)
	if err != nil {
		return err.Error(), ""
	}
	p.alone = c.alone
	failed = p.do(ctx, c.run)
	select {
	case <-st.deployer.ended:
		failed = join(failed, fmt.Sprintf("the deployer ended by itself: %v", orUnknown(st.deployer.err)))
	default:
	}
	if err := p.leave(); err != nil {
		failed = join(failed, err.Error())
	}
	return failed, p.history.String()
}

// join puts two texts into two lines.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}
