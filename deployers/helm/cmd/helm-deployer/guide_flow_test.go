// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var _ = Describe("The guide", func() {
	It("begins with an item that the deployer deploys", func(ctx SpecContext) {
		w, s := newWorld(ctx), newServer(GinkgoTB(), true, false)
		s.push(GinkgoTB(), "charts/test", "1.0.0", colors("red").Archive(), nil)
		w.start(s.flag(GinkgoTB(), writeFile(s.ca())))
		text := listBlocks(readGuide(GinkgoTB()), "yaml")[0]
		text = strings.NewReplacer("registry.example.com", s.host(), "namespace: demo", "namespace: "+w.namespace).Replace(text)
		di := &lsv1alpha1.DeployItem{}
		Expect(yaml.UnmarshalStrict([]byte(text), di)).To(Succeed())
		Expect(w.Deploy(ctx, di)).To(Succeed())
		done, err := w.WaitUntilFinished(ctx, w.key("web"))
		Expect(err).NotTo(HaveOccurred())
		Expect(done).To(beSucceeded())
		Expect(w.color(ctx, "web")).To(Equal("blue"))
		w.remove(ctx, "web")
	}, SpecTimeout(5*patience))
})
