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
		w.start(build(stategraph.NewGraph().Add("each", stategraph.ForEach(theNames, name, stategraph.Object(nameless(theInstance))))))
		di := w.deploy(ctx, "item", settings{Names: []string{"a", "b"}})
		backup := w.found(ctx, di, "each", "b")(NewGomega(Fail))[0]
		Expect(w.Landscaper.Update(ctx, w.Key("item"), configured(settings{Names: []string{"a"}}))).To(Succeed())
		w.again(ctx, "item")
		Eventually(w.Data(ctx, backup.Name)).WithTimeout(patience).Should(BeNil())
		w.Restore(ctx, &backup, ownership.ManagerFor(di.UID))
		Eventually(w.Data(ctx, backup.Name)).WithTimeout(patience).Should(BeNil())
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})
