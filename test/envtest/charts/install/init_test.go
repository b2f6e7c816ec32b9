// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"os"
	"os/exec"
	"path/filepath"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

var _ = Describe("Chart that deployerkit init writes", func() {
	It("runs the program with its configuration and its rights", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		run := func(dir, name string, args ...string) {
			GinkgoHelper()
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s: %s", cmd, out)
		}
		run(helm.Root(), "go", "run", "./cmd/deployerkit", "init", "example.org/greeting", "--module=example.org/greeting-deployer", "--dir="+dir, "--deployerkit="+helm.Root())
		run(dir, "go", "build", "-o", "program", ".")
		// This spec does not run ko. It runs a script that prints its arguments instead.
		tools := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(tools, "ko"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700)).To(Succeed()) //nolint:gosec // a program
		image := exec.CommandContext(ctx, "make", "image", "REPOSITORY=registry.example/greeting-deployer")
		image.Dir, image.Env = dir, append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
		Expect(image.CombinedOutput()).To(ContainSubstring("--tags=v0.1.0 "))
		programs["greeting-deployer"] = filepath.Join(dir, "program")
		chart := filepath.Join(dir, "chart")
		Expect(helm.RunLint(chart, "")).To(Or(BeEmpty(), ConsistOf(ContainSubstring("icon is recommended"))))

		r := newRelease(ctx, "rel", chart)
		r.install(ctx, r.values("deployer: {identity: me, controller: {workers: 2}}"))
		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/greeting-deployer:v0.1.0"), "the chart uses the image that 'make image' pushes")
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		di := i.Item(r.namespace, "item", "example.org/greeting", `{"apiVersion":"example.org/v1alpha1","kind":"Greeting","name":"you"}`)
		di.Labels = map[string]string{"spec": i.spec}
		Expect(i.Deploy(ctx, di)).To(Succeed())
		Expect(i.WaitUntilFinished(ctx, client.ObjectKeyFromObject(di))).To(HaveField("Status", SatisfyAll(
			HaveField("Phase", lsv1alpha1.DeployItemPhases.Succeeded), HaveField("Deployer.Identity", "me"))))
		Expect(i.Delete(ctx, client.ObjectKeyFromObject(di))).To(Succeed())
		p.stop()
		Expect(listRefused(ctx, r.namespace, "rel-greeting-deployer")).To(BeEmpty())
	})
})
