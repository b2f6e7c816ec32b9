// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// timeout is the time limit of each wait. Even on a busy machine, another replica can take over the lease within this
// time.
const timeout = 2 * time.Minute

// pod is a process that is started with the settings of a Pod from a release of the chart.
type pod struct {
	*gexec.Session

	root  string // directory with the mounted files
	spec  corev1.PodSpec
	ports map[string]int32
}

// start starts a process with the settings of a Pod of the release: its arguments, its environment, its files and a
// token. Specs that run several processes pass further arguments in more.
func (r *release) start(ctx context.Context, more ...string) *pod {
	GinkgoHelper()
	template := r.deployment(ctx).Spec.Template
	p := &pod{root: GinkgoT().TempDir(), spec: template.Spec, ports: map[string]int32{}}
	container := template.Spec.Containers[0]
	for _, port := range container.Ports {
		p.ports[port.Name] = port.ContainerPort
	}
	p.writeVolumes(ctx, r.namespace)
	args := []string{}
	for _, arg := range container.Args {
		args = append(args, strings.ReplaceAll(arg, "/app/ls", p.root+"/app/ls"))
	}
	kubeconfig, err := faultnet.EncodeKubeconfig(newConfigForAccount(ctx, r.namespace, template.Spec.ServiceAccountName))
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(p.root, "token")
	Expect(os.WriteFile(path, kubeconfig, 0o600)).To(Succeed())
	cmd := exec.Command(programs[container.Name], append(args, more...)...) //nolint:gosec // built here
	cmd.Env = []string{"KUBECONFIG=" + path, "HOME=/nonexistent"}
	for _, v := range container.Env {
		value := v.Value
		if v.ValueFrom != nil {
			value = map[string]string{"metadata.name": r.name + "-0", "metadata.namespace": r.namespace}[v.ValueFrom.FieldRef.FieldPath]
		}
		cmd.Env = append(cmd.Env, v.Name+"="+strings.ReplaceAll(value, "/app/ls", p.root+"/app/ls"))
	}
	p.Session, err = gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { p.Kill().Wait(timeout) })
	return p
}

// writeVolumes writes the files of the Secrets and ConfigMaps that the Pod mounts. Call it again after a Secret or
// ConfigMap has changed.
func (p *pod) writeVolumes(ctx context.Context, namespace string) {
	GinkgoHelper()
	for _, mount := range p.spec.Containers[0].VolumeMounts {
		for _, volume := range p.spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			dir := filepath.Join(p.root, mount.MountPath)
			Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
			for key, value := range readVolume(ctx, namespace, volume) {
				fresh := filepath.Join(dir, "."+key)
				Expect(os.WriteFile(fresh, value, 0o600)).To(Succeed())
				Expect(os.Rename(fresh, filepath.Join(dir, key))).To(Succeed())
			}
		}
	}
}

// readVolume returns the content of the files in a volume. The keys are the names of the files.
func readVolume(ctx context.Context, namespace string, volume corev1.Volume) map[string][]byte {
	GinkgoHelper()
	switch {
	case volume.Secret != nil:
		secret := &corev1.Secret{}
		Expect(c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: volume.Secret.SecretName}, secret)).To(Succeed())
		return secret.Data
	case volume.ConfigMap != nil:
		cm := &corev1.ConfigMap{}
		Expect(c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: volume.ConfigMap.Name}, cm)).To(Succeed())
		out := map[string][]byte{}
		for key, value := range cm.Data {
			out[key] = []byte(value)
		}
		return out
	}
	return nil
}

// runProbe returns the HTTP status of a probe, or 0 if there is no response. Like a kubelet, it does not connect to
// 127.0.0.1.
func (p *pod) runProbe(probe *corev1.Probe) int {
	code, _ := get(fmt.Sprintf("http://127.0.0.2:%d%s", p.ports[probe.HTTPGet.Port.StrVal], probe.HTTPGet.Path))
	return code
}

// waitUntilReady waits until the Pod is ready.
func (p *pod) waitUntilReady() {
	GinkgoHelper()
	Eventually(func() int { return p.runProbe(p.spec.Containers[0].ReadinessProbe) }).WithTimeout(timeout).Should(Equal(http.StatusOK))
	Expect(p.runProbe(p.spec.Containers[0].LivenessProbe)).To(Equal(http.StatusOK))
}

// getMetrics returns the text of the metrics page.
func (p *pod) getMetrics() string {
	_, page := get(fmt.Sprintf("http://127.0.0.2:%d/metrics", p.ports["metrics"]))
	return page
}

// stop stops the process with the signal that a kubelet sends, and returns the log of the process.
func (p *pod) stop() string {
	GinkgoHelper()
	Eventually(p.Terminate(), world.Patience).Should(gexec.Exit(0))
	log := string(p.Err.Contents())
	Expect(log).NotTo(ContainSubstring("panicked"))
	return log
}

// get requests a page and returns its HTTP status and its content.
func get(url string) (code int, page string) {
	client := &http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(url) //nolint:noctx // of a test
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close() //nolint:errcheck // was read
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(body)
}
