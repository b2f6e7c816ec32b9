// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/targets"
)

// Limits bounds the memory that responses of targets can take. If a field is zero, the default applies.
func ExampleLimits() {
	limits := targets.Limits{
		Object:   1 << 20,  // the largest response about one object, in bytes
		List:     16 << 20, // the largest list, in bytes
		Requests: 8,        // concurrent requests to one target
	}
	pool := targets.NewPool(targets.PoolOptions{Limits: limits})
	defer pool.Close()

	limits.Requests = -1
	fmt.Println(limits.Validate())
	// Output:
	// limits of targets: Requests is -1, must not be negative
}

// A Resolver returns the content of a Target, which can be inline or in a Secret.
func ExampleResolver() {
	resolver := targets.NewResolver(fake.NewClientBuilder().Build(), clock.RealClock{}, time.Minute)
	target := &lsv1alpha1.Target{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "europe"}}
	target.Spec.Configuration = lsv1alpha1.NewAnyJSONPointer([]byte(`{"region":"eu"}`))

	resolved, err := resolver.Resolve(context.Background(), target)
	fmt.Println(resolved.Content, err)
	// Output: {"region":"eu"} <nil>
}
