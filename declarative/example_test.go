// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/declarativetest"
)

// Config is the configuration that a user of the deployer writes.
type Config struct {
	Text string `json:"text"`
}

// Status is the status that the user sees.
type Status struct {
	Phase corev1.PodPhase `json:"phase,omitempty"`
}

var options = declarative.Options{
	Children: []declarative.ChildKind{
		{APIVersion: "v1", Kind: "Pod", Update: declarative.StrategyRecreate},
		{APIVersion: "v1", Kind: "Service"},
	},
}

// sync returns a Service and a Pod that echoes a text.
func sync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return nil, err
	}
	name := req.Name("echo")
	pod, _, err := declarative.Find[corev1.Pod](req.Children, "Pod", name)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"app": name}
	response := declarative.NewBuilder(Status{Phase: pod.Status.Phase}).Add(
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "echo", Image: "hashicorp/http-echo", Args: []string{"-text=" + config.Text}}}},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 5678}}},
		},
	)
	if pod.Status.Phase != corev1.PodRunning {
		response.Wait("the pod is not running")
	}
	return response.Build()
}

// item returns a deploy item as a user writes it.
func item(config string) *lsv1alpha1.DeployItem {
	return &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "1", Generation: 1},
		Spec:       lsv1alpha1.DeployItemSpec{Configuration: &runtime.RawExtension{Raw: []byte(config)}},
	}
}

func Example() {
	ctx := context.Background()
	handler := declarative.HandlerFunc(sync)
	plan, err := declarativetest.Run(ctx, handler, options, item(`{"text": "hi"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Join(plan.ListSteps(), "\n"))
	fmt.Println("waits:", plan.Wait)

	plan, err = declarativetest.Run(ctx, handler, options, item(`{"text": "bye"}`), plan.Observed...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Join(plan.ListSteps(), "\n"))

	_, err = declarativetest.Run(ctx, handler, options, item(`{"txt": "hi"}`))
	fmt.Println(err)
	// Output:
	// create Pod default/hello-echo
	// create Service default/hello-echo
	// waits: the pod is not running
	// recreate Pod default/hello-echo .spec.containers[0].args[0]
	// Op: DecodeConfig - Reason: InvalidConfiguration - Message: spec.config: unknown field "txt"
}

// registry is a FailableHandler that asks another system whether an image exists.
type registry struct {
	// exists reports whether an image exists.
	exists func(ctx context.Context, image string) (bool, error)
}

type image struct {
	Image string `json:"image"`
}

func (registry) Validate(_ context.Context, req *declarative.SyncRequest) error {
	_, err := declarative.Config[image](req)
	return err
}

func (r registry) SyncChildren(ctx context.Context, req *declarative.SyncRequest) ([]any, error) {
	config, err := declarative.Config[image](req)
	if err != nil {
		return nil, err
	}
	found, err := r.exists(ctx, config.Image)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the registry has no image %s", config.Image)
	}
	return []any{fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  containers:
  - {name: app, image: %s}
`, req.Name("app"), config.Image)}, nil
}

func (registry) DetermineStatus(_ context.Context, _ *declarative.SyncRequest, cause error) (any, error) {
	status := map[string]any{"ready": cause == nil}
	if cause != nil {
		status["error"] = cause.Error()
	}
	return status, nil
}

func ExampleFromFailable() {
	ctx := context.Background()
	for _, answer := range []error{nil, errors.New("the registry is down")} {
		handler := declarative.FromFailable(registry{exists: func(context.Context, string) (bool, error) { return true, answer }})
		req, err := declarative.NewRequest(item(`{"image": "app:1"}`), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		response, err := handler.Sync(ctx, req)
		fmt.Println(len(response.Children), response.Status, err)
	}
	// Output:
	// 1 map[ready:true] <nil>
	// 0 map[error:the registry is down ready:false] the registry is down
}

func ExampleName() {
	fmt.Println(declarative.Name("shop", "web"))
	fmt.Println(declarative.Name("shop.eu", "web"))  // no dots in the names of Services
	fmt.Println(declarative.Name("shop", "db", "1")) // the item "shop-db" has the name "shop-db-1" for its part "1"
	// Output:
	// shop-web
	// shop-eu-web-150f450a
	// shop-db-1-2f7ae20a
}

func ExampleValueOr() {
	old, err := declarative.ValueOr("kept", func() (string, error) { return "fresh", nil })
	fmt.Println(old, err)
	fresh, err := declarative.ValueOr("", func() (string, error) { return "fresh", nil })
	fmt.Println(fresh, err)
	// Output:
	// kept <nil>
	// fresh <nil>
}
