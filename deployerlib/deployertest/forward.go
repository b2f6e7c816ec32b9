// SPDX-License-Identifier: Apache-2.0

// Package deployertest contains aliases of names in packages landscapertest and faultnet, for tests that still import
// this path. New code should import those packages.
package deployertest

import (
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// Types of package faultnet and package landscapertest.
type (
	// Answer is landscapertest.Answer.
	Answer = landscapertest.Answer
	// Call is landscapertest.Call.
	Call = landscapertest.Call
	// Counter is faultnet.Counter.
	Counter = faultnet.Counter
	// Counts is faultnet.Counts.
	Counts = faultnet.Counts
	// Fake is landscapertest.Fake.
	Fake = landscapertest.Fake
	// Fault is faultnet.Fault.
	Fault = faultnet.Fault
	// HookCall is landscapertest.HookCall.
	HookCall = landscapertest.HookCall
	// Injected is faultnet.Injected.
	Injected = faultnet.Injected
	// Injector is faultnet.Injector.
	Injector = faultnet.Injector
	// Input is landscapertest.Input.
	Input = landscapertest.Input
	// Landscaper is landscapertest.Landscaper.
	Landscaper = landscapertest.Landscaper
	// LandscaperOptions is landscapertest.LandscaperOptions.
	LandscaperOptions = landscapertest.LandscaperOptions
	// Manager is landscapertest.Manager.
	Manager = landscapertest.Manager
	// ManagerOption is landscapertest.ManagerOption.
	ManagerOption = landscapertest.ManagerOption
	// Match is faultnet.Match.
	Match = faultnet.Match
	// Network is faultnet.Network.
	Network = faultnet.Network
	// Point is faultnet.Point.
	Point = faultnet.Point
	// Recorder is landscapertest.Recorder.
	Recorder = landscapertest.Recorder
	// Report is faultnet.Report.
	Report = faultnet.Report
	// Request is faultnet.Request.
	Request = faultnet.Request
	// Resuming is landscapertest.Resuming.
	Resuming = landscapertest.Resuming
	// Rule is faultnet.Rule.
	Rule = faultnet.Rule
	// RuleReport is faultnet.RuleReport.
	RuleReport = faultnet.RuleReport
	// Scenario is faultnet.Scenario.
	Scenario = faultnet.Scenario
	// Script is landscapertest.Script.
	Script = landscapertest.Script
	// Trace is landscapertest.Trace.
	Trace = landscapertest.Trace
)

// Constants of package faultnet and package landscapertest.
const (
	ActionResume       = landscapertest.ActionResume
	Always             = faultnet.Always
	DefaultAbort       = landscapertest.DefaultAbort
	DefaultPickup      = landscapertest.DefaultPickup
	DefaultProgressing = landscapertest.DefaultProgressing
	LongestDelay       = faultnet.LongestDelay
	NoSubresource      = faultnet.NoSubresource
	ReadVerb           = faultnet.ReadVerb
	ShortBackoffMax    = landscapertest.ShortBackoffMax
	ShortBackoffMin    = landscapertest.ShortBackoffMin
	ShortGrace         = landscapertest.ShortGrace
	ShortPoll          = landscapertest.ShortPoll
	WriteVerb          = faultnet.WriteVerb
)

// Functions of package faultnet and package landscapertest.
var (
	Block          = landscapertest.Block
	Both           = landscapertest.Both
	Break          = faultnet.Break
	BrokenWebhook  = faultnet.BrokenWebhook
	Change         = landscapertest.Change
	Chaos          = faultnet.Chaos
	Conflict       = faultnet.Conflict
	CutWatch       = faultnet.CutWatch
	Delay          = faultnet.Delay
	Denied         = faultnet.Denied
	Done           = landscapertest.Done
	ExpiredToken   = faultnet.ExpiredToken
	Fail           = landscapertest.Fail
	Faults         = faultnet.Start
	Golden         = landscapertest.Golden
	Hang           = faultnet.Hang
	Idempotent     = landscapertest.Idempotent
	IgnoreContext  = landscapertest.IgnoreContext
	InPlace        = faultnet.InPlace
	InTurn         = landscapertest.InTurn
	KillAfter      = faultnet.KillAfter
	KillBefore     = faultnet.KillBefore
	Kubeconfig     = faultnet.Kubeconfig
	LostAnswer     = faultnet.LostAnswer
	NewFake        = landscapertest.NewFake
	NewLandscaper  = landscapertest.NewLandscaper
	NewNetwork     = faultnet.NewNetwork
	Panic          = landscapertest.Panic
	Phase          = landscapertest.Phase
	Refuse         = faultnet.Refuse
	ReplayWatch    = faultnet.ReplayWatch
	RequestOf      = faultnet.RequestOf
	Reset          = faultnet.Reset
	Restarting     = landscapertest.Restarting
	Returns        = landscapertest.Returns
	Scheme         = landscapertest.Scheme
	Stale          = faultnet.Stale
	StallWatch     = faultnet.StallWatch
	StartManager   = landscapertest.StartManager
	Status         = faultnet.Status
	Timeout        = faultnet.Timeout
	Times          = faultnet.Times
	UntilCancelled = landscapertest.UntilCancelled
	Wait           = landscapertest.Wait
	When           = faultnet.When
	WithDeployer   = landscapertest.WithDeployer
	WithLog        = landscapertest.WithLog
	WithOptions    = landscapertest.WithOptions
)
