// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// Type is the type of the deploy items.
const Type = "example.org/batch"

// Options lists the kinds of the objects that the handler returns. The image of a Job cannot be
// changed, so the library recreates the Job if the image changes.
var Options = declarative.Options{
	Children: []declarative.ChildKind{{APIVersion: "batch/v1", Kind: "Job", Update: declarative.StrategyRecreate}},
}

// Args returns the arguments of deployerlib.Add. The policy restricts which Targets the items may use.
func Args(policy targets.Policy) deployerlib.DeployerArgs {
	options := Options
	options.Targets = policy
	return declarative.Args("batch-deployer", Type, Handler{}, options)
}

// Config is the content of spec.config.
type Config struct {
	// Image is the image that the Job runs.
	Image string `json:"image"`
}

// Status is the provider status of an item.
type Status struct {
	// Job is the state of the Job: Missing, Outdated, Running, Complete or Failed.
	Job string `json:"job"`
}

// These are the states of a Job.
const (
	missing  = "Missing"
	outdated = "Outdated" // the Job was created for an earlier configuration
	running  = "Running"
	complete = "Complete"
	failed   = "Failed"
)

// Handler runs a Job for each deploy item.
type Handler struct{}

var (
	_ declarative.Handler   = Handler{}
	_ declarative.Finalizer = Handler{}
)

// Sync returns the Job of an item. The item succeeds when the Job is complete, and fails when the Job fails.
func (Handler) Sync(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[Config](req)
	if err != nil {
		return nil, err
	}
	if config.Image == "" {
		return nil, deployerlib.NewConfigError("spec.config.image", "required")
	}
	now, state, err := getState(req)
	if err != nil {
		return nil, err
	}
	if state != missing && getImage(now) != config.Image {
		state = outdated
	}
	response := declarative.NewBuilder(Status{Job: state}).Add(newJob(req.Name("batch"), config.Image))
	switch state {
	case complete:
	case failed:
		return &declarative.SyncResponse{Status: Status{Job: state}}, deployerlib.NewConfigError("spec.config.image", "the Job of %q failed", config.Image)
	default:
		response.Wait("the Job is %s", state)
	}
	return response.Build()
}

// Finalize waits until the Job has completed or failed. After that, the library deletes the Job.
func (Handler) Finalize(_ context.Context, req *declarative.SyncRequest) (*declarative.FinalizeResponse, error) {
	_, state, err := getState(req)
	if err != nil {
		return nil, err
	}
	response := &declarative.FinalizeResponse{Status: Status{Job: state}}
	if state == running {
		response.Retry, response.Reason = time.Minute, "the Job must not be interrupted"
	}
	return response, nil
}

// getState returns the item's Job and the state of the Job. If there is no Job, it returns an empty Job and the state
// Missing.
func getState(req *declarative.SyncRequest) (*batchv1.Job, string, error) {
	job, found, err := declarative.Find[batchv1.Job](req.Children, "Job", req.Name("batch"))
	if err != nil || !found {
		return job, missing, err
	}
	for _, condition := range job.Status.Conditions {
		ended := condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed
		if ended && condition.Status == corev1.ConditionTrue {
			return job, string(condition.Type), nil
		}
	}
	return job, running, nil
}

// getImage returns the image of a Job.
func getImage(job *batchv1.Job) string {
	for _, container := range job.Spec.Template.Spec.Containers {
		return container.Image
	}
	return ""
}

// newJob returns a Job that runs the image once.
func newJob(name, image string) *batchv1.Job {
	job := &batchv1.Job{}
	job.Name = name
	job.Spec.BackoffLimit = new(int32(0))
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "batch", Image: image}},
	}
	return job
}
