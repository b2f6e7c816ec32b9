// SPDX-License-Identifier: Apache-2.0

package historyflags

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// pod returns a fake API server that supports port forwarding to one pod. It connects each stream to the given address,
// which stands for the port of the pod.
func pod(t *testing.T, address string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/api/v1/namespaces/ls-system/pods/deployer-0/portforward" {
			http.Error(w, "pods is forbidden", http.StatusForbidden)
			return
		}
		if _, err := httpstream.Handshake(req, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			t.Error(err)
			return
		}
		var streams sync.WaitGroup
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(stream httpstream.Stream, replySent <-chan struct{}) error {
			streams.Go(func() {
				<-replySent
				if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
					_ = stream.Close()
					return
				}
				copyBoth(stream, address)
			})
			return nil
		})
		if conn != nil {
			<-conn.CloseChan()
			streams.Wait()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// copyBoth connects a stream to an address. It copies bytes in both directions until one side ends.
func copyBoth(stream httpstream.Stream, address string) {
	defer func() { _ = stream.Reset() }()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	})
	_, _ = io.Copy(stream, conn)
	_ = stream.Close()
	_ = conn.Close()
	_ = stream.Reset()
	both.Wait()
}

func TestHistoryOfPod(t *testing.T) {
	deployer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/history/shop/web" || req.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"reconciles": [{"result": "done"}]}`)
	}))
	defer deployer.Close()
	server := pod(t, deployer.Listener.Addr().String())
	read := func(name string) (string, error) {
		f := Flags{pod: name}
		source, err := f.NewSource(&rest.Config{BearerToken: "token"}, &rest.Config{Host: server.URL})
		if err != nil {
			return "", err
		}
		got, err := source(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"})
		if err != nil {
			return "", err
		}
		return got[0].Result, nil
	}
	t.Run("the history is read through the API server [V5]", func(t *testing.T) {
		if got, err := read("ls-system/deployer-0"); got != "done" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("reading the history needs the permission to forward the port [V5]", func(t *testing.T) {
		if _, err := read("ls-system/other"); err == nil || !strings.Contains(err.Error(), "forward port 8082 of pod ls-system/other") {
			t.Errorf("error = %v, want an error that contains %q", err, "forward port 8082 of pod ls-system/other")
		}
	})
}

func TestHistoryFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		flags Flags
		err   string
	}{
		"no flags":                      {Flags{}, ""},
		"pod and address":               {Flags{pod: "a/b", address: "c"}, "set only one of them"},
		"certificate and insecure":      {Flags{address: "c", ca: "x", insecure: true}, "set only one of them"},
		"address without a certificate": {Flags{address: "c"}, "needs --history-ca or --history-insecure"},
		"missing certificate file":      {Flags{address: "c", ca: "/none"}, "/none"},
		"pod without a namespace":       {Flags{pod: "b"}, "NAMESPACE/NAME"},
		"invalid port":                  {Flags{pod: "a/b:x"}, "is not a port"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.flags.NewSource(&rest.Config{BearerToken: "t"}, nil)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.err) || tc.err == "" && got != "" {
				t.Errorf("want %q, got %q", tc.err, got)
			}
		})
	}
	t.Run("the flags select a pod and its port", func(t *testing.T) {
		namespace, name, port, err := podOf("a/b:9000")
		if diff := cmp.Diff([]string{"a", "b", "9000"}, []string{namespace, name, port}); diff != "" || err != nil {
			t.Errorf("%v: %s", err, diff)
		}
	})
}
