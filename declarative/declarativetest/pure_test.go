// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/declarative"
)

// newHandler returns a handler. The function `answer` determines the status in the responses of the handler, and the
// data of the only child, a ConfigMap.
func newHandler(answer func(req *declarative.SyncRequest) (status any, data map[string]string, err error)) declarative.Handler {
	return declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		status, data, err := answer(req)
		if err != nil {
			return nil, err
		}
		return declarative.NewBuilder(status).Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"a": "b"}}, Data: data}).Build()
	})
}

func TestFindImpurities(t *testing.T) {
	calls := 0
	type data = map[string]string
	for name, tc := range map[string]struct {
		handler declarative.Handler
		want    []string
	}{
		"a pure handler [R27]": {newHandler(func(req *declarative.SyncRequest) (any, data, error) {
			return map[string]any{"children": len(req.Children)}, data{"item": req.Item.Name}, nil
		}), nil},
		"a timestamp [R33]": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			return nil, data{"when": time.Now().String()}, nil
		}), []string{"the same input results in a different ConfigMap shop/c .data.when"}},
		"a timestamp of whole seconds [R33]": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			return nil, data{"when": time.Now().Format(time.RFC3339)}, nil
		}), []string{"the same input results in a different ConfigMap shop/c .data.when"}},
		"the day of the month [R33]": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			return nil, data{"when.day": time.Now().Format("02")}, nil
		}), []string{"the same input results in a different ConfigMap shop/c .data[when.day]"}},
		"a timestamp in the status [R33]": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			return map[string]any{"at": time.Now()}, nil, nil
		}), []string{"the same input results in a different status .at"}},
		"the order of children [R33]": {newHandler(func(req *declarative.SyncRequest) (any, data, error) {
			return nil, data{"first": req.Children[0].Name()}, nil
		}), []string{"the same input results in a different ConfigMap shop/c .data.first"}},
		"the order of a map [R33]": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			keys := []string{}
			for key := range (data{"a": "", "b": "", "c": "", "d": ""}) {
				keys = append(keys, key)
			}
			return nil, data{"keys": strings.Join(keys, "")}, nil
		}), []string{"the same input results in a different ConfigMap shop/c .data.keys"}},
		"a random key [R33]": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			calls++
			return nil, data{fmt.Sprint("k", min(calls, 2)): ""}, nil
		}), []string{"the same input results in a different ConfigMap shop/c .data.k1", "the same input results in a different ConfigMap shop/c .data.k2"}},
		"a random name [R33]": {declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			calls++
			return declarative.NewBuilder(nil).Add(newService(fmt.Sprint("s", calls%2), "ClusterIP")).Build()
		}), []string{"the same input results in a different set of children: Service shop/s0 is in only some of the responses", "the same input results in a different set of children: Service shop/s1 is in only some of the responses"}},
		"a handler that fails": {newHandler(func(*declarative.SyncRequest) (any, data, error) { return nil, nil, errors.New("bad") }), []string{"the handler failed: bad"}},
		"a handler that fails in the second call": {newHandler(func(*declarative.SyncRequest) (any, data, error) {
			if calls++; calls%3 == 0 {
				return nil, nil, errors.New("bad")
			}
			return nil, nil, nil
		}), []string{"the handler fails in only some of the calls with the same input: bad"}},
		"a handler that changes a child in each call [R27]": {newHandler(func(req *declarative.SyncRequest) (any, data, error) {
			child, _ := req.Children.Find("ConfigMap", "c")
			return nil, data{"x": child.GetString("data", "x") + "x"}, nil
		}), []string{"the handler still changes something when all children exist as it returned them: change ConfigMap shop/c .data.x"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls = 0
			o := newOptions()
			o.Children[3].Update = declarative.StrategyApply
			got := findImpurities(t, tc.handler, o, NewItem(t, "shop", "web", map[string]any{}), []any{newService("a", "ClusterIP"), newService("b", "ClusterIP")})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCheckPureAcceptsValuesThatAreGeneratedOnce(t *testing.T) {
	handler := declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
		secret, _, err := declarative.Find[corev1.Secret](req.Children, "Secret", req.Name("login"))
		if err != nil {
			return nil, err
		}
		password, err := declarative.ValueOr(secret.Data["password"], func() ([]byte, error) { return []byte(rand.Text()), nil })
		if err != nil {
			return nil, err
		}
		return declarative.NewBuilder(nil).Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: req.Name("login")}, Data: map[string][]byte{"password": password}}).Build()
	})
	item := NewItem(t, "shop", "web", map[string]any{})
	first, err := Run(t.Context(), handler, newOptions(), item)
	if err != nil {
		t.Fatal(err)
	}
	CheckPure(t, handler, newOptions(), item, first.Observed...) // [R34]
	got := findImpurities(t, handler, newOptions(), item, nil)
	if diff := cmp.Diff([]string{"the same input results in a different Secret shop/web-login .data.password"}, got); diff != "" {
		t.Errorf("[R34] without the children that hold the values: %s", diff)
	}
}
