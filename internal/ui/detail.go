// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	lserrors "github.com/gardener/landscaper/apis/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/explain"
)

// These constants limit a plan.
const (
	maxPlanChanges = 200
	maxPlanFields  = 100
	maxPlanValue   = 2048
)

// itemDetail is the explanation of an item, with its events.
type itemDetail struct {
	*explain.Explanation

	Events []itemEvent `json:"events,omitempty"`
}

// itemEvent is an event about an item. At is in milliseconds since 1970.
type itemEvent struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	At      int64  `json:"at"`
}

// planDetail contains the changes that a reconcile of an item would make in its target.
type planDetail struct {
	Changes   []planChange `json:"changes"`
	Unchanged int          `json:"unchanged"`
	Moves     []string     `json:"moves,omitempty"`
	Omitted   int          `json:"omitted,omitempty"`
	// Problem says why the plan is not complete.
	Problem string `json:"problem,omitempty"`
}

type planChange struct {
	Action string      `json:"action"`
	Object string      `json:"object"`
	Fields []planField `json:"fields,omitempty"`
}

type planField struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// handleRead returns a handler that responds with the result of a function as JSON.
func (s *Server) handleRead(read func(context.Context, types.NamespacedName) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		key := types.NamespacedName{Namespace: req.PathValue("namespace"), Name: req.PathValue("name")}
		if s.options.Namespace != "" && key.Namespace != s.options.Namespace {
			respond(w, http.StatusForbidden, map[string]string{"error": "The page shows only namespace " + s.options.Namespace + "."})
			return
		}
		ctx, cancel := context.WithTimeout(req.Context(), readTimeout)
		defer cancel()
		select {
		case s.reads <- struct{}{}:
			defer func() { <-s.reads }()
		case <-ctx.Done():
			return
		}
		value, err := read(ctx, key)
		switch {
		case err == nil:
			respond(w, http.StatusOK, value)
		case explain.IsMissing(err):
			respond(w, http.StatusNotFound, map[string]string{"error": "This deploy item does not exist, or no longer exists."})
		case apierrors.IsForbidden(err):
			respond(w, http.StatusForbidden, map[string]string{"error": "You lack the right: " + contract.OneLine(err.Error(), 1024)})
		default:
			respond(w, http.StatusBadGateway, map[string]string{"error": contract.OneLine(err.Error(), 1024)})
		}
	}
}

func respond(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the browser has gone if this fails
}

// readItem explains an item.
func (s *Server) readItem(ctx context.Context, key types.NamespacedName) (any, error) {
	facts, err := explain.ReadFacts(ctx, s.client, key, explain.Options{Host: s.host, History: s.options.History, Clock: s.options.Clock})
	if err != nil {
		return nil, err
	}
	out := itemDetail{Explanation: explain.Explain(facts)}
	for _, e := range facts.Events {
		out.Events = append(out.Events, itemEvent{Reason: e.Reason, Message: e.Message, At: e.At.UnixMilli()})
	}
	return out, nil
}

// readObjects reads the objects of an item, with their dependents.
func (s *Server) readObjects(ctx context.Context, key types.NamespacedName) (any, error) {
	return explain.ReadItemTree(ctx, s.client, explain.TreeOptions{Namespace: key.Namespace, Name: key.Name, Open: s.options.Open, Clock: s.options.Clock})
}

// readPlan plans a reconcile of an item.
func (s *Server) readPlan(ctx context.Context, key types.NamespacedName) (any, error) {
	if s.options.Plan == nil {
		return nil, errors.New("the page was started without the function to plan")
	}
	plan, err := s.options.Plan(ctx, key)
	out := newPlanDetail(plan)
	if fault, ok := errors.AsType[lserrors.LsError](err); ok {
		err = errors.New(fault.LandscaperError().Message) // the other parts of the error are only for Landscaper
	}
	if err != nil {
		out.Problem = contract.OneLine(err.Error(), 1024)
	}
	return out, nil
}

func newPlanDetail(p apply.Plan) planDetail {
	out := planDetail{Unchanged: p.Unchanged, Omitted: max(0, len(p.Changes)-maxPlanChanges), Changes: []planChange{}}
	for _, c := range p.Changes[:min(len(p.Changes), maxPlanChanges)] {
		change := planChange{Action: string(c.Action), Object: contract.OneLine(c.Ref.String(), 1024)}
		for _, f := range c.Fields[:min(len(c.Fields), maxPlanFields)] {
			change.Fields = append(change.Fields, planField{
				Path: contract.OneLine(f.Path, maxPlanValue), Old: contract.OneLine(f.Old, maxPlanValue), New: contract.OneLine(f.New, maxPlanValue),
			})
		}
		out.Changes = append(out.Changes, change)
	}
	for _, m := range p.Moves {
		out.Moves = append(out.Moves, contract.OneLine(m.From.String(), 1024))
	}
	return out
}
