// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

// galeraConfig is the configuration of an item: a database.
type galeraConfig struct {
	Name     string `json:"name"`
	Replicas int32  `json:"replicas"`
	Image    string `json:"image,omitempty"`
}

// galera is the graph of the documentation of Yaook's operators.
type galera struct {
	Service       stategraph.Resource
	Certificates  stategraph.Resource
	Configuration stategraph.Resource
	Database      stategraph.Resource `graph:"requires=service;certificates;configuration"`
	Haproxy       stategraph.Resource `graph:"requires=database"`
	PublicService stategraph.Resource `graph:"requires=haproxy"`
}

func galeraGraph() *stategraph.Graph {
	GinkgoHelper()
	g, err := stategraph.FromStruct(&galera{
		Service:       stategraph.Object(serviceOf("db")),
		Certificates:  stategraph.Object(certificateBody, stategraph.WithKinds(certificateKind)),
		Configuration: stategraph.Versioned(configurationBody),
		Database:      stategraph.Object(databaseBody),
		Haproxy:       stategraph.Object(haproxyBody),
		PublicService: stategraph.Object(serviceOf("public")),
	})
	Expect(err).NotTo(HaveOccurred())
	return g
}

// galeraIn returns the configuration and the namespace of the item.
func galeraIn(ctx context.Context) (*galeraConfig, string, error) {
	config, err := stategraph.Config[galeraConfig](ctx)
	if err != nil {
		return nil, "", err
	}
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, "", err
	}
	return config, item.Namespace, nil
}

// meta is that of the item's objects.
func metaOf(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name}
}

func serviceOf(suffix string) func(ctx context.Context) (*corev1.Service, error) {
	return func(ctx context.Context) (*corev1.Service, error) {
		config, ns, err := galeraIn(ctx)
		if err != nil {
			return nil, err
		}
		return &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metaOf(ns, config.Name+"-"+suffix),
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": config.Name + "-" + suffix}, Ports: []corev1.ServicePort{{Port: 3306}}},
		}, nil
	}
}

func certificateBody(ctx context.Context) (*unstructured.Unstructured, error) {
	config, ns, err := galeraIn(ctx)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": certificateKind.GroupVersion().String(), "kind": certificateKind.Kind,
		"metadata": map[string]any{"namespace": ns, "name": config.Name}, "spec": map[string]any{"dnsName": config.Name + "-db"},
	}}, nil
}

func configurationBody(ctx context.Context) (*corev1.ConfigMap, error) {
	config, ns, err := galeraIn(ctx)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metaOf(ns, config.Name),
		Data: map[string]string{"my.cnf": fmt.Sprintf("wsrep_cluster_size=%d", config.Replicas)},
	}, nil
}

// podsOf are the Pods of a workload.
func podsOf(app, image string, env ...corev1.EnvVar) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": app}
	if image == "" {
		image = "example.com/none:1"
	}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Env: env}}},
	}
}

func databaseBody(ctx context.Context) (*appsv1.StatefulSet, error) {
	config, ns, err := galeraIn(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := stategraph.Name(ctx, "configuration")
	if err != nil {
		return nil, err
	}
	selector, template := podsOf(config.Name+"-db", config.Image, corev1.EnvVar{Name: "CONFIG", Value: settings})
	return &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: metaOf(ns, config.Name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(config.Replicas), ServiceName: config.Name + "-db", Selector: selector, Template: template,
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}, nil
}

func haproxyBody(ctx context.Context) (*appsv1.Deployment, error) {
	config, ns, err := galeraIn(ctx)
	if err != nil {
		return nil, err
	}
	database, err := stategraph.Output[*appsv1.StatefulSet](ctx, "database")
	if err != nil {
		return nil, err
	}
	selector, template := podsOf(config.Name+"-public", config.Image, corev1.EnvVar{Name: "BACKEND", Value: database.Spec.ServiceName})
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metaOf(ns, config.Name+"-haproxy"),
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: selector, Template: template},
	}, nil
}

// states are the states of the components in the status, by name.
func (w *world) states(ctx context.Context, name string) func(Gomega) map[string]string {
	return func(g Gomega) map[string]string {
		out := map[string]string{}
		for _, one := range w.status(ctx, name)(g).Components {
			out[one.Name] = string(one.State)
		}
		return out
	}
}

// condition is the message of the summary condition.
func (w *world) condition(ctx context.Context, name string) func(Gomega) string {
	return func(g Gomega) string {
		found := contract.GetCondition(w.item(ctx, name)(g).Status.Conditions, stategraph.ConditionReady)
		if found == nil {
			return ""
		}
		return string(found.Status) + " " + found.Reason + ": " + found.Message
	}
}

var _ = Describe("galera", func() {
	It("is installed in order, each part when what it requires is ready, and deleted in reverse [Y4, Y8, Y9, Y10, Y29, Yx9]", func(ctx SpecContext) {
		w := newWorld(ctx, contract.JobID)
		stuck.set(w.ns, true)
		DeferCleanup(stuck.set, w.ns, false)
		w.start(galeraGraph())
		w.begin(ctx, "galera", galeraConfig{Name: "galera", Replicas: 3})

		By("the certificate takes its time")
		Eventually(w.states(ctx, "galera")).WithTimeout(patience).Should(Equal(map[string]string{
			"service": "Ready", "certificates": "Progressing", "configuration": "Ready",
			"database": "Blocked", "haproxy": "Blocked", "public-service": "Blocked",
		}))
		Expect(w.exists(ctx, &appsv1.StatefulSet{}, "galera")).To(BeFalse())
		Consistently(func() bool { return w.exists(ctx, &appsv1.StatefulSet{}, "galera") }).WithTimeout(time.Second).Should(BeFalse())
		w.issue(ctx, "galera")

		By("the database starts, Pod by Pod")
		Eventually(func() bool { return w.exists(ctx, &appsv1.StatefulSet{}, "galera") }).WithTimeout(time.Second).Should(BeTrue())
		stuck.set(w.ns+"/galera-0", true)
		Eventually(w.condition(ctx, "galera")).WithTimeout(patience).Should(And(
			HavePrefix("False Progressing: haproxy, "), ContainSubstring("blocked by database: StatefulSet.apps "+w.ns+"/galera: "), ContainSubstring("1/3")))
		Expect(w.exists(ctx, &appsv1.Deployment{}, "galera-haproxy")).To(BeFalse())

		By("everything is ready")
		stuck.set(w.ns, false)
		w.succeeded(ctx, "galera")
		Expect(w.condition(ctx, "galera")(NewGomega(Fail))).To(Equal("True AllReady: all 6 components are ready"))
		Expect(w.exists(ctx, &corev1.Service{}, "galera-public")).To(BeTrue())

		By("deletion")
		before := w.counter.Snapshot()
		Expect(w.ls.Delete(ctx, w.key("galera"))).To(Succeed())
		Expect(w.exists(ctx, &appsv1.StatefulSet{}, "galera")).To(BeFalse())
		Expect(w.exists(ctx, &corev1.Service{}, "galera-db")).To(BeFalse())
		Expect(w.counter.Snapshot().Since(before).Writes().Total()).To(Equal(6), "one deletion each")
	}, SpecTimeout(2*time.Minute))
})
