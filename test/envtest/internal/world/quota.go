// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet"
)

// SetQuotaExceeded makes the target refuse each write of a ConfigMap by the deployer, like a quota. If the name is
// empty, it ends the effect of an earlier call.
func (w *World) SetQuotaExceeded(name string) {
	w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool {
		return name != "" && r.Resource == "configmaps" && r.Name == name && r.Verb != "get" && r.Verb != "delete"
	}, faultnet.ReturnStatus(http.StatusForbidden, metav1.StatusReasonForbidden)))
}

// UpdateRepeatedly changes a ConfigMap up to 50 times a second for the given time, as another client. It calls the
// function `also` with each change. It returns the number of changes.
func (w *World) UpdateRepeatedly(ctx context.Context, name string, span time.Duration, also func()) (changes int) {
	w.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(span); time.Now().Before(end) && ctx.Err() == nil; changes++ {
		now := <-ticker.C
		patch := fmt.Sprintf(`{"data":{"flood":%q}}`, now.Format(time.RFC3339Nano))
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
		w.must(w.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("flood")))
		also()
	}
	NewWithT(w.t).Expect(ctx.Err()).NotTo(HaveOccurred())
	return changes
}
