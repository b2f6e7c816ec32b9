// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Endpoints of a deployer", func() {
	It("each endpoint can be disabled, and its port is then closed [Rx13]", func(ctx SpecContext) {
		ls := newLandscaper(c)
		item := createAndStart(ctx, ls, "endpoints", "", func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"user": "endpoints"} })
		silent := run("--kubeconfig="+kubeconfig, "--leader-elect=false", "--item-selector=user=endpoints",
			"--metrics-bind-address=0", "--health-probe-bind-address=0", "--history-bind-address=0")
		Expect(ls.WaitUntilFinished(ctx, item)).To(HaveField("Status.Phase", lsv1alpha1.DeployItemPhases.Succeeded), "the deployer processes items")
		Consistently(listListeningPorts).WithArguments(silent.Command.Process.Pid).Should(BeEmpty())

		for _, flag := range []string{"--metrics-bind-address=", "--health-probe-bind-address=", "--history-bind-address="} {
			address := findFreeAddress()
			session := run("--kubeconfig="+kubeconfig, "--leader-elect=false", "--item-selector=user=missing", "--history-bind-address=0", flag+address)
			Eventually(listListeningPorts, patience).WithArguments(session.Command.Process.Pid).Should(ConsistOf(parsePort(address)), flag)
			Consistently(listListeningPorts).WithArguments(session.Command.Process.Pid).Should(ConsistOf(parsePort(address)), flag)
		}
	})
})

// parsePort returns the port of an address.
func parsePort(address string) int {
	GinkgoHelper()
	port, err := strconv.Atoi(address[strings.LastIndex(address, ":")+1:])
	Expect(err).NotTo(HaveOccurred())
	return port
}

// listListeningPorts returns the TCP ports on which a process listens.
func listListeningPorts(pid int) ([]int, error) {
	sockets, err := listSockets(pid)
	if err != nil {
		return nil, err
	}
	var ports []int
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(raw)) {
			fields := strings.Fields(line)
			const address, state, inode, listening = 1, 3, 9, "0A"
			if len(fields) <= inode || fields[state] != listening || !slices.Contains(sockets, fields[inode]) {
				continue
			}
			port, err := strconv.ParseInt(fields[address][strings.LastIndex(fields[address], ":")+1:], 16, 32)
			if err != nil {
				return nil, err
			}
			ports = append(ports, int(port))
		}
	}
	return ports, nil
}

// listSockets returns the inodes of the sockets that a process has opened.
func listSockets(pid int) ([]string, error) {
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(open) == 0 {
		return nil, fmt.Errorf("no open files of process %d: %w", pid, err)
	}
	var inodes []string
	for _, fd := range open {
		name, err := os.Readlink(fd)
		if err == nil && strings.HasPrefix(name, "socket:[") {
			inodes = append(inodes, strings.TrimSuffix(strings.TrimPrefix(name, "socket:["), "]"))
		}
	}
	return inodes, nil
}
