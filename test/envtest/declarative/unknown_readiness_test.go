// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
)

var _ = Describe("Children that the inventory does not contain", func() {
	It("deletes a child that the item wrote, for example after a restore of the target [F109]", func(ctx SpecContext) {
		w := newEnv(ctx, configMapKind)
		w.start(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			all, err := newConfigMaps(req)
			return &declarative.SyncResponse{Children: all}, err
		}))
		names := func(names ...string) any {
			maps := map[string]map[string]string{}
			for _, name := range names {
				maps[name] = map[string]string{"key": name}
			}
			return config(maps)
		}
		di := w.CreateAndRun(ctx, "item", names("a", "b"))
		backup := w.Read(ctx, "b")
		w.Update(ctx, "item", names("a"))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())
		w.CreateFromBackup(ctx, backup, ownership.FormatFieldManager(di.UID))
		Eventually(w.Data(ctx, "b")).WithTimeout(patience).Should(BeNil())
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})
