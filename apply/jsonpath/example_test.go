// SPDX-License-Identifier: Apache-2.0

package jsonpath_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/deployerkit/deployerkit/apply/jsonpath"
)

// newDeployment returns a Deployment with a status, as a cluster returns it.
func newDeployment() map[string]any {
	return map[string]any{"status": map[string]any{
		"replicas":   int64(2),
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}}
}

// A path can filter lists. Braces and the leading dot are optional.
func ExamplePath_Find() {
	ctx := context.Background()
	for _, text := range []string{"status.replicas", "{.status.conditions[?(@.type=='Available')].status}"} {
		path, err := jsonpath.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(path.Find(ctx, newDeployment()))
	}
	// Output:
	// [2] <nil>
	// [True] <nil>
}

// A path that finds nothing is an error.
func ExampleErrNotFound() {
	path, err := jsonpath.Parse("status.conditions[?(@.type=='Ready')].status")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = path.Find(context.Background(), newDeployment())
	fmt.Println(errors.Is(err, jsonpath.ErrNotFound))
	// Output: true
}

// Parse returns an error if the path is invalid.
func ExampleParse() {
	_, err := jsonpath.Parse("status.conditions[")
	fmt.Println(err)
	// Output:
	// is not a JSON path: unterminated array
}

// The key of an export can consist of several parts.
func ExampleParseKey() {
	fmt.Println(jsonpath.ParseKey("database.connection.url"))
	fmt.Println(jsonpath.ParseKey(`labels.app\.kubernetes\.io/name`))
	// Output:
	// [database connection url] <nil>
	// [labels app.kubernetes.io/name] <nil>
}
