// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

var _ = Describe("Objects of components that the inventory does not contain", func() {
	It("deletes an object that the item wrote, for example after a restore of the target [F109]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		name := func(element string) string { return element }
		w.start(build(stategraph.NewBuilder().Add("each", stategraph.ForEach(getNames, name, stategraph.Object(newUnnamedConfigMap(getInstanceData))))))
		di := w.runSuccessfully(ctx, "item", settings{Names: []string{"a", "b"}})
		backup := w.listConfigMaps(ctx, di, "each", "b")(NewGomega(Fail))[0]
		Expect(w.Landscaper.Update(ctx, w.Key("item"), newConfig(settings{Names: []string{"a"}}))).To(Succeed())
		w.rerunSuccessfully(ctx, "item")
		Eventually(w.Data(ctx, backup.Name)).WithTimeout(patience).Should(BeNil())
		w.CreateFromBackup(ctx, &backup, ownership.FormatFieldManager(di.UID))
		Eventually(w.Data(ctx, backup.Name)).WithTimeout(patience).Should(BeNil())
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})
