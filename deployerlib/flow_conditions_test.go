// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestConditionsWithoutTimes(t *testing.T) {
	t.Run("the library sets the missing times of a condition, and keeps the transition time while the status stays [F89]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		set := func(status lsv1alpha1.ConditionStatus, message string) landscapertest.Answer {
			return func(ctx context.Context, in landscapertest.Input) error {
				in.Item.Status.Conditions = []lsv1alpha1.Condition{{Type: "Disk", Status: status, Message: message}}
				if err := deployerlib.Checkpoint(ctx); err != nil {
					return err
				}
				return deployerlib.WaitFor("the disk", time.Minute)
			}
		}
		for _, step := range []struct {
			status              lsv1alpha1.ConditionStatus
			message             string
			transition, updated time.Duration
		}{
			{"False", "a", 0, 0},
			{"False", "a", 0, 0},
			{"False", "b", 0, 2 * time.Minute},
			{"True", "b", 3 * time.Minute, 3 * time.Minute},
		} {
			w.fake.QueueAnswers(contract.ActionReconcile, set(step.status, step.message))
			w.runAttempt()
			c := contract.GetCondition(w.getItem().Status.Conditions, "Disk")
			if c == nil || !c.LastTransitionTime.Time.Equal(t0.Add(step.transition)) || !c.LastUpdateTime.Time.Equal(t0.Add(step.updated)) {
				t.Errorf("%+v: the condition is %+v", step, c)
			}
			w.clock.Step(time.Minute)
		}
	})
	t.Run("times that the deployer sets are kept [F89]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			in.Item.Status.Conditions = []lsv1alpha1.Condition{{Type: "Disk", Status: "True", LastTransitionTime: *newTime(-time.Hour), LastUpdateTime: *newTime(-time.Minute)}}
			return nil
		})
		w.runAttempt()
		c := contract.GetCondition(w.getItem().Status.Conditions, "Disk")
		if c == nil || !c.LastTransitionTime.Equal(newTime(-time.Hour)) || !c.LastUpdateTime.Equal(newTime(-time.Minute)) {
			t.Errorf("the condition is %+v", c)
		}
	})
}
