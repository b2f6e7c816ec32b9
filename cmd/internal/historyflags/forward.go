// SPDX-License-Identifier: Apache-2.0

package historyflags

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/deployerkit/deployerkit/cmd/internal/clientflags"
)

const (
	// defaultHistoryPort is the port at which a deployer serves its history by default.
	defaultHistoryPort = "8082"
	// forwardTimeout is the time that a port-forward may take to become ready.
	forwardTimeout = 10 * time.Second
)

// podOf splits NAMESPACE/NAME[:PORT].
func podOf(text string) (namespace, name, port string, err error) {
	text, port, found := strings.Cut(text, ":")
	if !found {
		port = defaultHistoryPort
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", "", "", fmt.Errorf("--history-pod: %q is not a port", port)
	}
	if namespace, name, err = clientflags.ParseName(text, ""); err != nil {
		return "", "", "", fmt.Errorf("--history-pod: %w", err)
	}
	return namespace, name, port, nil
}

// forward forwards a local port to a port of a pod through the API server. It returns the local address. The caller
// must call the function `stop`.
func forward(ctx context.Context, cfg *rest.Config, namespace, pod, port string) (address string, stop func(), err error) {
	pods, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return "", nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return "", nil, err
	}
	url := pods.RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	end, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + port}, end, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	timer := time.NewTimer(forwardTimeout)
	defer timer.Stop()
	select {
	case <-ready:
	case err = <-ended:
		err = fmt.Errorf("forward port %s of pod %s/%s: %w", port, namespace, pod, err)
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("forward port %s of pod %s/%s: no answer", port, namespace, pod)
	}
	if err != nil {
		close(end)
		return "", nil, err
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) == 0 {
		close(end)
		return "", nil, fmt.Errorf("forward port %s of pod %s/%s: no local port: %w", port, namespace, pod, err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() { close(end) }, nil
}
