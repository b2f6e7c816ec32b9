// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"io"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/cmd/internal/objectfile"
)

// helmType is the type of the deploy items of the Helm deployer. Its program has a command plan, too. This command
// cannot plan such items, because it does not contain Helm.
const helmType = "landscaper.gardener.cloud/helm"

// item returns the deploy item to plan. By default, this is the stored item. If the user has specified a file, it is
// the item in the file, with the UID and the status of the stored item.
func (f *flags) item(ctx context.Context, ls *landscaper, itemType lsv1alpha1.DeployItemType, stdin io.Reader) (*lsv1alpha1.DeployItem, error) {
	wanted := &lsv1alpha1.DeployItem{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	if f.file != "" {
		var err error
		if wanted, err = readItem(f.file, stdin); err != nil {
			return nil, err
		}
	}
	if f.namespace != "" && wanted.Namespace != "" && f.namespace != wanted.Namespace {
		return nil, fmt.Errorf("the deploy item in the file is in namespace %s, but -n is %s", wanted.Namespace, f.namespace)
	}
	wanted.Namespace = cmp.Or(wanted.Namespace, f.namespace, metav1.NamespaceDefault)
	stored := &lsv1alpha1.DeployItem{}
	err := ls.Get(ctx, client.ObjectKeyFromObject(wanted), stored)
	missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
	switch {
	case err != nil && (!missing || f.file == ""):
		return nil, fmt.Errorf("get DeployItem %s/%s: %w", wanted.Namespace, wanted.Name, err)
	case stored.DeletionTimestamp != nil:
		return nil, fmt.Errorf("DeployItem %s/%s is being deleted and is no longer reconciled", wanted.Namespace, wanted.Name)
	case f.file == "":
		wanted = stored
	default:
		wanted.UID, wanted.Status = stored.UID, stored.Status
	}
	if wanted.Spec.Type != itemType {
		hint := ""
		if wanted.Spec.Type == helmType {
			hint = "; use the command plan of the program helm-deployer for it"
		}
		return nil, fmt.Errorf("spec.type: is %q, only deploy items of type %q can be planned%s", wanted.Spec.Type, itemType, hint)
	}
	return wanted, nil
}

// readItem reads a file that must contain exactly one deploy item.
func readItem(path string, stdin io.Reader) (*lsv1alpha1.DeployItem, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := objectfile.Read(path, stdin, objectfile.DeployItem, di); err != nil {
		return nil, err
	}
	if di.Name == "" {
		return nil, fmt.Errorf("%s: metadata.name: required", path)
	}
	return di, nil
}
