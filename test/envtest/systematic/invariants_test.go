// SPDX-License-Identifier: Apache-2.0

package systematic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// checkObjects checks the state of the namespace and of the account for an item with the given value. The namespace
// must contain exactly the ConfigMaps and Secrets of that item, and the account must have the value. If value is empty,
// no object and no account may exist.
func (r *run) checkObjects(ctx context.Context, value string) error {
	got, err := r.listActual(ctx)
	if err != nil {
		return err
	}
	account, made, removed := r.registry.getAccount(itemName)
	wantMade := 0
	if r.subject.account {
		got, wantMade = append(got, fmt.Sprintf("account %q", account)), 1
	}
	if diff := cmp.Diff(r.listExpected(value), got); diff != "" {
		return fmt.Errorf("not as wanted with value %q: -want +got:\n%s", value, diff)
	}
	if wantRemoved := wantMade; made != wantMade || value == "" && removed != wantRemoved || value != "" && removed != 0 {
		return fmt.Errorf("with value %q the account was made %d and removed %d times", value, made, removed)
	}
	return nil
}

// listExpected returns a line for each object that must exist if the item has the given value.
func (r *run) listExpected(value string) []string {
	lines := []string{}
	if value != "" && r.subject.objects != nil {
		for _, name := range r.subject.objects(value) {
			lines = append(lines, fmt.Sprintf("ConfigMap %s: %s", name, value))
		}
	}
	if value != "" && r.subject.exports {
		lines = append(lines, "Secret item-export: "+value)
	}
	if value != "" && r.subject.login {
		lines = append(lines, "Secret item-login")
	}
	if r.subject.account {
		lines = append(lines, fmt.Sprintf("account %q", value))
	}
	return lines
}

// listActual returns a line for each existing ConfigMap and Secret. It ignores foreign objects, which the deployer did
// not create.
func (r *run) listActual(ctx context.Context) ([]string, error) {
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	if err := c.List(ctx, configMaps, client.InNamespace(r.ns)); err != nil {
		return nil, err
	}
	if err := c.List(ctx, secrets, client.InNamespace(r.ns)); err != nil {
		return nil, err
	}
	lines := []string{}
	for i := range configMaps.Items {
		cm := &configMaps.Items[i]
		name := cm.Name
		if strings.HasPrefix(name, "item-settings-") { // the end of the name depends on the content, so it is removed
			name = "item-settings"
		}
		if !r.isForeign("ConfigMap", cm) {
			lines = append(lines, fmt.Sprintf("ConfigMap %s: %s", name, cm.Data["value"]))
		}
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		switch {
		case r.isForeign("Secret", secret):
		case secret.Name == "item-export":
			lines = append(lines, "Secret item-export: "+getExport(secret))
		default:
			lines = append(lines, "Secret "+secret.Name)
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// getExport returns the value in an export Secret.
func getExport(secret *corev1.Secret) string {
	content := map[string]string{}
	if err := json.Unmarshal(secret.Data[lsv1alpha1.DataObjectSecretDataKey], &content); err != nil {
		return err.Error()
	}
	return content["value"]
}

// checkInvariants checks the recorded versions against all invariants, and returns the violations.
func (r *run) checkInvariants(ctx context.Context) []string {
	if err := r.waitUntilSynced(ctx); err != nil {
		return []string{"the history is not whole: " + err.Error()}
	}
	objects, err := records.getVersions(r.ns)
	if err != nil {
		return []string{err.Error()}
	}
	faults := r.history.ListViolations()
	faults = append(faults, r.checkJobsEndedOnce()...)
	faults = append(faults, r.checkFinalizer(ctx, objects)...)
	faults = append(faults, r.checkInventory(objects)...)
	faults = append(faults, r.checkForeignObjects(objects)...)
	return append(faults, checkPassword(objects)...)
}

// checkJobsEndedOnce requires that each of the first four jobs of the item ended once. The fifth job deleted the item.
func (r *run) checkJobsEndedOnce() []string {
	var faults []string
	ends := map[string]int{}
	finals := 0
	before := &lsv1alpha1.DeployItem{}
	for _, di := range r.history.GetVersions(itemName) {
		if di.Status.JobIDFinished != before.Status.JobIDFinished {
			ends[di.Status.JobIDFinished]++
		}
		if contract.IsFinal(di.Status.Phase) && !contract.IsFinal(before.Status.Phase) && di.DeletionTimestamp == nil {
			finals++
		}
		before = di
	}
	if finals != r.jobs {
		faults = append(faults, fmt.Sprintf("%d jobs ended %d times", r.jobs, finals))
	}
	if world.RevisionOf(r.subject.revision).Jobs {
		for n := range r.jobs {
			if job := fmt.Sprintf("job-%d", n+1); ends[job] != 1 {
				faults = append(faults, fmt.Sprintf("%s was finished %d times", job, ends[job]))
			}
		}
	}
	return faults
}

// checkFinalizer requires that the item had the finalizer all the time from the creation of the first object to the
// deletion of the last object. It also requires that the item no longer exists.
func (r *run) checkFinalizer(ctx context.Context, objects []version) []string {
	versions := r.history.GetVersions(itemName)
	begin := slices.IndexFunc(versions, contract.HasLandscaperFinalizer)
	if begin < 0 {
		return []string{"the item never had a finalizer"}
	}
	var faults []string
	for _, di := range versions[begin : len(versions)-1] {
		if !contract.HasLandscaperFinalizer(di) {
			faults = append(faults, "the finalizer was lost at version "+di.ResourceVersion)
		}
	}
	since, until := parseResourceVersion(versions[begin]), parseResourceVersion(versions[len(versions)-1])
	for _, v := range objects {
		switch {
		case r.isForeign(v.kind, v.object):
		case v.event == watch.Added && v.getResourceVersion() < since:
			faults = append(faults, fmt.Sprintf("%s was there before the finalizer", v))
		// The garbage collector deletes objects with an owner reference later. That is allowed.
		case v.getResourceVersion() > until && len(v.object.GetOwnerReferences()) == 0:
			faults = append(faults, fmt.Sprintf("%s: %s after the item was gone", v, v.event))
		}
	}
	if c.Get(ctx, r.key, &lsv1alpha1.DeployItem{}) == nil {
		faults = append(faults, "the item is still there")
	}
	return faults
}

// checkInventory requires that the inventory of the item contained each object before the object was created.
func (r *run) checkInventory(objects []version) []string {
	var faults []string
	versions := r.history.GetVersions(itemName)
	for _, v := range objects {
		if v.event != watch.Added || v.object.GetLabels()[ownership.LabelItem] == "" || r.isForeign(v.kind, v.object) {
			continue
		}
		known := ""
		for _, di := range versions {
			if parseResourceVersion(di) < v.getResourceVersion() && di.Status.ProviderStatus != nil {
				known = string(di.Status.ProviderStatus.Raw)
			}
		}
		if !strings.Contains(known, `"`+v.object.GetName()+`"`) {
			faults = append(faults, fmt.Sprintf("%s was made before the inventory had it", v))
		}
	}
	return faults
}

// checkForeignObjects requires that each foreign object has only one version, because the deployer must not change it.
func (r *run) checkForeignObjects(objects []version) []string {
	var faults []string
	for _, v := range objects {
		if planted, found := r.foreign[v.String()]; found && (v.event != watch.Added || v.object.GetResourceVersion() != planted) {
			faults = append(faults, fmt.Sprintf("foreign %s was touched: %s", v, v.event))
		}
	}
	for _, name := range foreignItems {
		versions := r.history.GetVersions(name)
		if now := versions[len(versions)-1]; now.ResourceVersion != r.foreign["DeployItem "+name] || now.DeletionTimestamp != nil {
			faults = append(faults, "foreign DeployItem "+name+" was touched")
		}
	}
	return faults
}

// checkPassword requires that the password never changed.
func checkPassword(objects []version) []string {
	known := ""
	for _, v := range objects {
		secret, ok := v.object.(*corev1.Secret)
		if !ok || secret.Name != "item-login" {
			continue
		}
		if now := string(secret.Data["value"]); known != "" && now != known {
			return []string{"the password changed"}
		}
		known = string(secret.Data["value"])
	}
	return nil
}

// waitUntilSynced waits until the chronicle has received everything that happened in the namespace.
func (r *run) waitUntilSynced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.history.Sync(ctx); err != nil {
		return err
	}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		obj.SetNamespace(r.ns)
		obj.SetName("the-end")
		if err := c.Create(ctx, obj); err != nil {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, look, true, func(context.Context) (bool, error) {
		objects, err := records.getVersions(r.ns)
		ends := 0
		for _, v := range objects {
			if v.object.GetName() == "the-end" {
				ends++
			}
		}
		return ends == 2, err
	})
}
