// SPDX-License-Identifier: Apache-2.0

package main

// chart describes an image. It has one panel for each leg of a benchmark, with one bar for each contender. Each panel has
// a scale of its own, because a leg without a change can be a hundred times faster than an installation.
type chart struct {
	image     string // name of the file in docs/images
	output    string // name of the file in docs/benchmarks
	benchmark string
	title     string
	measure   string // the end of the unit, such as objects/s
	legs      []word
	// contenders are drawn in this order. The first one is ours.
	contenders []word
}

// word is a part of a unit, and what the image shows instead.
type word struct{ unit, label string }

var (
	objectLegs = []word{{"install", "All objects are new"}, {"no-op", "Nothing has changed"}, {"one-of-50-changed", "One of 50 objects has changed"}}
	peers      = []word{{"apply.Engine", "DeployerKit"}, {"bare-loop", "bare loop"}, {"fluxcd/pkg/ssa-ApplyAll", "Flux (ssa.ApplyAll)"}, {"kubectl-apply---server-side", "kubectl apply"}}
)

// charts are the images.
var charts = []chart{
	{
		image: "benchmark-objects.svg", output: "peers.txt", benchmark: "Peers", title: "Objects per second (more is better)",
		measure: "objects/s", legs: objectLegs, contenders: peers,
	},
	{
		image: "benchmark-calls.svg", output: "peers.txt", benchmark: "Peers", title: "Requests per object (fewer is better)",
		measure: "calls/object", legs: objectLegs, contenders: peers,
	},
}
