// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/base64"
	"os"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
)

var _ = Describe("deployerkit plan", func() {
	It("prints the output of docs/plan.md, and writes nothing", func(ctx SpecContext) {
		page, err := os.ReadFile("../../../docs/plan.md")
		Expect(err).NotTo(HaveOccurred())
		command, output, file := block(string(page), "sh"), block(string(page), "text"), block(string(page), "yaml")
		createNamespace(ctx, "shop")
		applyItem(ctx, item("shop", "web",
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}, data: {colour: green, size: '10'}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: retired}}",
			"{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: login}, stringData: {password: old and secret}}",
			"{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: web}, spec: {ports: [{port: 80}]}}",
		))
		before := listVersions(ctx, "shop")
		Expect(os.WriteFile("web.yaml", []byte(file), 0o600)).To(Succeed())
		args := strings.Fields(strings.TrimPrefix(command, "deployerkit plan "))
		got, err := runWithInput(ctx, "", append(args, "--allow-private-hosts")...) // the cluster of the test has a private address
		Expect(err).To(MatchError(plan.ErrToDo))
		Expect(got).To(Equal(output))
		Expect(listVersions(ctx, "shop")).To(Equal(before))

		got, err = runWithInput(ctx, file, "-f", "-", "--kubeconfig=landscaper.kubeconfig", "--allow-private-hosts")
		Expect(err).To(MatchError(plan.ErrToDo), "from the standard input")
		Expect(got).To(Equal(output))

		di := &lsv1alpha1.DeployItem{}
		Expect(yaml.Unmarshal([]byte(file), di)).To(Succeed())
		applyItem(ctx, di)
		Expect(run(ctx, args[:2]...)).To(Equal("DeployItem shop/web on Target shop/cluster\n0 to do, 4 unchanged\n"),
			"what was planned was done, and no more")
	}, SpecTimeout(8*time.Minute))

	It("plans an item of the cluster by its name, and shows changes by other clients", func(ctx SpecContext) {
		createNamespace(ctx, "named")
		applyItem(ctx, item("named", "web", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: named, name: a}, data: {k: v}}"))
		Expect(run(ctx, "web", "-n", "named")).To(ContainSubstring("0 to do, 1 unchanged"))
		_, err := run(ctx, "other", "-n", "named")
		Expect(err).To(MatchError(ContainSubstring("get DeployItem named/other")))
		_, err = run(ctx, "web")
		Expect(err).To(MatchError(ContainSubstring("get DeployItem default/web")))
	}, SpecTimeout(5*time.Minute))

	It("plans an item for another cluster although item, Target and namespace do not exist yet", func(ctx SpecContext) {
		createNamespace(ctx, "early")
		di := item("nowhere", "web", "{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: nowhere, name: a}}")
		di.UID, di.Status.ProviderStatus = "of-another-life", nil
		out, err := run(ctx, "-f", file(di), "--target-kubeconfig=landscaper.kubeconfig")
		Expect(err).To(MatchError(plan.ErrToDo))
		Expect(out).To(Equal("DeployItem nowhere/web on landscaper.kubeconfig\ncreate ConfigMap nowhere/a\ncreate Namespace nowhere\n2 to do, 0 unchanged\n"))
	}, SpecTimeout(5*time.Minute))

	It("prints the changes that it can plan, and the objects that it cannot plan", func(ctx SpecContext) {
		createNamespace(ctx, "partial")
		applyItem(ctx, item("partial", "first", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: partial, name: a}, data: {k: v}}"))
		out, err := run(ctx, "-f", file(item("partial", "second",
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: partial, name: a}, data: {k: w}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: partial, name: b}}")))
		Expect(err).To(MatchError(ContainSubstring("the plan is not complete: ConfigMap partial/a: belongs to deploy item partial/first")))
		Expect(err).NotTo(MatchError(plan.ErrToDo))
		Expect(out).To(ContainSubstring("create ConfigMap partial/b\n"))
	}, SpecTimeout(5*time.Minute))

	It("names an immutable field, and plans to recreate the object with --recreate", func(ctx SpecContext) {
		createNamespace(ctx, "immutable")
		fixed := func(value string) *lsv1alpha1.DeployItem {
			return item("immutable", "web", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: immutable, name: a}, immutable: true, data: {k: "+value+"}}")
		}
		applyItem(ctx, fixed("v"))
		_, err := run(ctx, "-f", file(fixed("w")), "--recreate=false")
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("ConfigMap immutable/a: .data"), ContainSubstring("immutable"))))
		Expect(err).NotTo(MatchError(plan.ErrToDo))

		out, err := run(ctx, "-f", file(fixed("w")), "--recreate")
		Expect(err).To(MatchError(plan.ErrToDo))
		Expect(out).To(HaveSuffix("recreate ConfigMap immutable/a\n1 to do, 0 unchanged\n"))
	}, SpecTimeout(5*time.Minute))

	It("prints no secret value, also in errors", func(ctx SpecContext) {
		const canary = "CANARY-7f3a91"
		createNamespace(ctx, "secrets")
		secret := func(kind, data string) string {
			return "{apiVersion: v1, kind: Secret, metadata: {namespace: secrets, name: s}, type: " + kind + ", " + data + "}"
		}
		old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "secrets", Name: "s", Annotations: map[string]string{"kept": canary + "-kept"}}}
		old.StringData = map[string]string{"k": canary + "-old", "gone": canary + "-gone"}
		Expect(c.Create(ctx, old)).To(Succeed())
		newTarget(ctx, "secrets", "broken", "apiVersion: v1\nkind: Config\ncurrent-context: "+canary+"\nusers: [{name: u, user: {token: "+canary+"}}]\n")
		newTarget(ctx, "secrets", "hostile", "apiVersion: v1\nusers: [{name: u, user: {token: "+canary+", exec: {command: "+canary+"}}}]\n")
		broken, hostile := item("secrets", "web"), item("secrets", "web")
		broken.Spec.Target.Name, hostile.Spec.Target.Name = "broken", "hostile"
		encoded := base64.StdEncoding.EncodeToString([]byte(canary))
		all := ""
		for what, args := range map[string][]string{
			"a change":                     {"-f", file(item("secrets", "web", secret("Opaque", "stringData: {k: "+canary+"-new, more: "+canary+"}")))},
			"elsewhere":                    {"-f", file(item("secrets", "web", secret("Opaque", "stringData: {k: "+canary+"}"), "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: secrets, name: kube-root-ca.crt}, data: {copy: "+canary+"}}"))},
			"refused by the API":           {"-f", file(item("secrets", "web", secret("kubernetes.io/tls", "stringData: {tls.crt: "+canary+"}")))},
			"not base64":                   {"-f", file(item("secrets", "web", secret("Opaque", "data: {k: "+canary+"}")))},
			"a value that is not a string": {"-f", file(item("secrets", "web", secret("Opaque", "stringData: {k: {a: "+canary+"}}")))},
			"an unknown field":             {"-f", write("apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\nmetadata: {name: web}\nspec: {config: {a: " + canary + "}, unknown: " + canary + "}\n")},
			"invalid YAML":                 {"-f", write("kind: DeployItem\n  password: " + canary + "\n : [")},
			"an invalid Target":            {"-f", file(broken)},
			"a hostile Target":             {"-f", file(hostile)},
		} {
			out, err := run(ctx, args...)
			Expect(err).To(HaveOccurred(), what)
			all += what + ":\n" + out + err.Error() + "\n"
		}
		Expect(all).To(ContainSubstring(".data.k: *** -> ***"))
		Expect(all).NotTo(Or(ContainSubstring("CANARY"), ContainSubstring(strings.TrimRight(encoded, "=")[:12])))
	}, SpecTimeout(8*time.Minute))

	It("reports mistakes in the item and in the command line", func(ctx SpecContext) {
		createNamespace(ctx, "wrong")
		applyItem(ctx, item("wrong", "going", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: wrong, name: a, finalizers: [example.com/stay]}}"))
		going := types.NamespacedName{Namespace: "wrong", Name: "going"}
		Expect(ls.MarkForDeletion(ctx, going)).To(Succeed())
		changed := func(change func(*lsv1alpha1.DeployItem)) []string {
			di := item("wrong", "web", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: wrong, name: a}}")
			change(di)
			return []string{"-f", file(di)}
		}
		fine := changed(func(*lsv1alpha1.DeployItem) {})
		for want, args := range map[string][]string{
			"give either the name":                                    {},
			"of a deploy item or a file with -f":                      append([]string{"web"}, fine...),
			"accepts at most 1 arg":                                   {"web", "other"},
			`default strategy: is "replace"`:                          append([]string{"--default-strategy=replace"}, fine...),
			"landscaper cluster: load kubeconfig":                     append(fine, "--kubeconfig=missing"),
			"--target-kubeconfig: ":                                   append(fine, "--target-kubeconfig=missing"),
			"clusters[0].cluster.server":                              append(fine, "--allow-private-hosts=false"),
			"no such file":                                            {"-f", "missing.yaml"},
			"is empty, want a deploy item":                            {"-f", write("# nothing\n---\n")},
			"contains several documents":                              {"-f", write("{a: b}\n---\n{c: d}\n")},
			`is v1 "Secret", want landscaper.gardener`:                {"-f", write("apiVersion: v1\nkind: Secret\n")},
			`unknown field "spec.typ"`:                                {"-f", write("apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\nspec: {typ: a}\n")},
			"metadata.name: required":                                 {"-f", write("apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\n")},
			"is in namespace wrong, but -n is other":                  append(fine, "-n=other"),
			`spec.type: is "other"`:                                   changed(func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "other" }),
			"spec.target: required":                                   changed(func(di *lsv1alpha1.DeployItem) { di.Spec.Target = nil }),
			"get Target wrong/missing":                                changed(func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "missing" }),
			"spec.target.namespace: ":                                 changed(func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Namespace = "other" }),
			"Error: spec.config: required":                            changed(func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil }),
			"DeployItem wrong/going is being deleted":                 {"going", "-n=wrong"},
			`the cluster does not know example.com/v1, Kind=Anything`: {"-f", file(item("wrong", "web", "{apiVersion: example.com/v1, kind: Anything, metadata: {name: a}}"))},
			`key "kind" already set`:                                  {"-f", write("apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\nkind: DeployItem\n")},
		} {
			if !strings.Contains(strings.Join(args, " "), "--kubeconfig=missing") {
				args = append([]string{"--kubeconfig=landscaper.kubeconfig"}, args...)
			}
			if !strings.Contains(strings.Join(args, " "), "--allow-private-hosts") {
				args = append(args, "--allow-private-hosts")
			}
			out, err := runWithInput(ctx, "", args...)
			Expect(err).To(HaveOccurred(), "with the arguments %s", args)
			Expect(out).To(ContainSubstring(want), "with the arguments %s", args)
			Expect(err).NotTo(MatchError(plan.ErrToDo))
			Expect(out).To(Equal("Error: "+err.Error()+"\n"), "the error alone")
		}
		Expect(c.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "wrong", Name: "a"}}, noFinalizers)).To(Succeed())
	}, SpecTimeout(8*time.Minute))
})

// block returns the content of the first fenced code block of a language.
func block(page, language string) string {
	_, after, _ := strings.Cut(page, "\n```"+language+"\n")
	content, _, found := strings.Cut(after, "```\n")
	Expect(found).To(BeTrue(), language)
	return content
}
