// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
)

// flags contains the values of the flags.
type flags struct {
	name, command                       string
	item, invalid, slow, finish, target string // each is the name of a file
	otherLabels                         map[string]string
	finishCommand, deployedCommand      string
	kubeconfig, junit, logFile          string
	revisions, only, except             []string
	parallel                            int
	bounds                              conformance.Bounds
}

func (f *flags) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&f.command, "command", "", "command line that starts the deployer; required")
	fs.StringVar(&f.item, "item", "", `file with a deploy item that succeeds quickly; "-" for the standard input; required`)
	fs.StringVar(&f.invalid, "invalid-item", "", "file with a deploy item that can never succeed")
	fs.StringVar(&f.slow, "slow-item", "", "file with a deploy item that stays in progress: until --finish-item or --finish-command lets it succeed, or for at least some seconds if neither flag is set")
	fs.StringVar(&f.finish, "finish-item", "", "file with a deploy item whose configuration lets the slow item succeed")
	fs.StringVar(&f.finishCommand, "finish-command", "", "command line that lets the slow item succeed; {namespace} and {name} are replaced")
	fs.StringVar(&f.deployedCommand, "deployed-command", "",
		"command line that exits with 0 if the objects of the item exist, and with 1 if they do not; {namespace} and {name} are replaced")
	fs.StringVar(&f.target, "target", "", "file with the Target of the items (default: the items have no Target)")
	fs.StringToStringVar(&f.otherLabels, "other-target-labels", nil, "labels of Targets for which the deployer is not responsible (default: it is responsible for all Targets)")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster to use (default: a control plane is started)")
	fs.StringSliceVar(&f.revisions, "revision", nil, "revision of the contract to check, job-id or annotation; repeatable (default: all)")
	fs.StringSliceVar(&f.only, "only", nil, "name of a check to run; repeatable (default: all)")
	fs.StringArrayVar(&f.except, "except", nil, "[revision/]check=reason: a check that the deployer is known to fail; repeatable")
	fs.StringVar(&f.junit, "junit", "", "file for the report as JUnit")
	fs.StringVar(&f.logFile, "log-file", "", "file for the output of the deployer")
	fs.StringVar(&f.name, "name", "", "name of the deployer in the report (default: the type of the item)")
	fs.IntVar(&f.parallel, "parallel", 0, "how many checks run at the same time (default 4)")
	fs.DurationVar(&f.bounds.Start, "start-within", 0, "time limit for the first write of the deployer after its start (default 1m)")
	fs.DurationVar(&f.bounds.Finish, "finish-within", 0, "time limit for a run (default 30s)")
	fs.DurationVar(&f.bounds.Stop, "stop-within", 0, "time limit for the deployer to stop (default 30s)")
	fs.DurationVar(&f.bounds.Timeout, "item-timeout", 0, "spec.timeout of the item that must time out; it must be long enough for the deployer to write a phase (default 2s)")
}

// parseExceptions parses --except.
func (f *flags) parseExceptions() ([]conformance.Exception, error) {
	var all []conformance.Exception
	for _, text := range f.except {
		check, reason, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--except %q: want [revision/]check=reason", text)
		}
		e := conformance.Exception{Check: check, Reason: reason}
		if revision, name, ok := strings.Cut(check, "/"); ok {
			e.Revision, e.Check = contract.Revision(revision), name
		}
		if e.Revision != "" && !slices.Contains(contract.AllRevisions(), e.Revision) {
			return nil, fmt.Errorf("--except %q: there is no revision %q", text, e.Revision)
		}
		all = append(all, e)
	}
	return all, nil
}
