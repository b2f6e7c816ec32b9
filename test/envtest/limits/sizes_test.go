// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

const mebibyte = 1 << 20

// expectConfigError requires that a job failed with the code ERR_CONFIGURATION_PROBLEM, and that the message of the
// error is a single line with the given text.
func expectConfigError(di *lsv1alpha1.DeployItem, text string) {
	GinkgoHelper()
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
	Expect(di.Status.JobIDFinished).To(Equal(di.Status.JobID))
	e := di.Status.LastError
	Expect(e).NotTo(BeNil())
	AddReportEntry("refused", fmt.Sprintf("%s: %s %v", e.Reason, e.Message, e.Codes))
	Expect(e.Codes).To(ContainElement(lsv1alpha1.ErrorConfigurationProblem))
	Expect(e.Message).To(Equal(contract.OneLine(e.Message, 1024)), "one line")
	Expect(e.Message).To(ContainSubstring(text))
	Expect(e.Message).NotTo(ContainSubstring("xxxxxxxx"), "no content")
}

func expectSucceeded(di *lsv1alpha1.DeployItem) {
	GinkgoHelper()
	Expect(di.Status.LastError).To(BeNil())
	Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded))
}

var _ = Describe("Size limits of the manifest deployer", func() {
	It("deploys, changes and deletes a configuration of 1 MiB", func() {
		w := newEnv(GinkgoTB(), cp)
		w.startManifestDeployer()
		for _, mark := range []string{"a", "b"} {
			config := w.configMaps(4, mebibyte/4-100, mark)
			var di *lsv1alpha1.DeployItem
			if mark == "a" {
				di = w.createAndRun("big", config)
			} else {
				di = w.update("big", config)
			}
			expectSucceeded(di)
			AddReportEntry("size", fmt.Sprintf("configuration %d, item %d bytes", len(config), sizeOf(w, di)))
			cm := &corev1.ConfigMap{}
			Expect(w.Client.Get(w.Context(), w.Key("cm-3"), cm)).To(Succeed())
			Expect(cm.Data["k"]).To(HavePrefix(mark + "xxx"))
		}
		w.remove("big")
		Expect(w.objects()).To(BeZero())
	})

	It("rejects a configuration that leaves no room for the inventory before the first write to the target [D11]", func() {
		w := newEnv(GinkgoTB(), cp)
		w.startManifestDeployer()
		expectSucceeded(w.createAndRun("full", w.configMaps(3, 300, "a")))
		Expect(w.objects()).To(Equal(3))
		before := w.Counter.Snapshot()
		expectConfigError(w.update("full", w.configMaps(3500, 300, "b")), "too large")
		Expect(w.objects()).To(Equal(3), "the existing objects remain in the inventory")
		Expect(w.Counter.Snapshot().Since(before).OnlyWrites().Sum()).To(BeZero())
		w.remove("full")
		Expect(w.objects()).To(BeZero())
	})

	It("rejects more objects than an inventory can hold before the first write to the target [D11]", func() {
		w := newEnv(GinkgoTB(), cp)
		w.startManifestDeployer()
		expectConfigError(w.createAndRun("many", w.configMaps(8000, 1, "a")), "objects are too many")
		Expect(w.objects()).To(BeZero())
		Expect(w.Counter.Snapshot().OnlyWrites().Sum()).To(BeZero())
		w.remove("many")
	})
})

var _ = Describe("Size limits of the mock deployer", func() {
	It("exports as much as a Secret can hold, and rejects more", func() {
		w := newEnv(GinkgoTB(), cp)
		w.startMockDeployer()
		secret := types.NamespacedName{Namespace: w.Namespace, Name: "out-export"}
		export := func(size int) string { return newMockConfig(`"export":"` + strings.Repeat("x", size) + `"`) }
		expectSucceeded(w.createAndRun("out", export(mebibyte-2)))
		Expect(w.Client.Get(w.Context(), secret, &corev1.Secret{})).To(Succeed())
		expectConfigError(w.update("out", export(mebibyte)), "more than the 1048576 that a Secret can hold")
		stored := &corev1.Secret{}
		Expect(w.Client.Get(w.Context(), secret, stored)).To(Succeed())
		Expect(stored.Data["config"]).To(HaveLen(mebibyte), "the last valid export is kept")
		w.remove("out")
		Expect(apierrors.IsNotFound(w.Client.Get(w.Context(), secret, stored))).To(BeTrue())
	})

	It("stores a provider status that fits, and ends the job of a larger one", func() {
		w := newEnv(GinkgoTB(), cp)
		w.startMockDeployer()
		status := func(size int) string {
			return newMockConfig(`"providerStatus":{"apiVersion":"v1","kind":"S","text":"` + strings.Repeat("x", size) + `"}`)
		}
		di := w.createAndRun("state", status(400<<10))
		expectSucceeded(di)
		AddReportEntry("size", fmt.Sprintf("item %d bytes", sizeOf(w, di)))
		di = w.update("state", status(1000<<10)) // twice this size exceeds the limit of the API server
		expectConfigError(di, "large")
		Expect(di.Status.ProviderStatus.Raw).To(HaveLen(len(`{"apiVersion":"v1","kind":"S","text":""}`)+400<<10), "the last valid status is kept")
		expectConfigError(w.update("state", status(mebibyte)), "spec.config.providerStatus")
		w.remove("state")
	})
})
