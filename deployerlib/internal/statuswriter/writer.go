// SPDX-License-Identifier: Apache-2.0

package statuswriter

import (
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/internal/redact"
	"github.com/deployerkit/deployerkit/patch"
)

const (
	maxRebases = 5 // maximum number of rebases of one write

	// WriteTimeout limits the duration of one write with its rebases.
	WriteTimeout = 30 * time.Second
)

// These are the names of the requests that a Writer makes in addition to writes.
const (
	RequestGet         = "get"
	RequestCheckStored = "fence"
)

// Telemetry observes what a Writer is about to send.
type Telemetry interface {
	// RecordRequest is called before a request that changes nothing.
	RecordRequest(name string)
	// RecordWrite is called before a write.
	RecordWrite(item types.NamespacedName, changes itempatch.Changes)
	// RecordMissingRight is called after a write that failed because neither a patch nor an update of the resource is
	// allowed.
	RecordMissingRight(resource string)
}

// Options configures a Writer. All fields except LeaderElection are required.
type Options struct {
	Client    client.Client // for writes
	Live      client.Reader // reads from the API server
	Clock     clock.PassiveClock
	Telemetry Telemetry
	// LeaderElection has the meaning of deployerlib.DeployerArgs.LeaderElection.
	LeaderElection bool
}

// Writer writes deploy items. It is safe for concurrent use.
type Writer struct{ options Options }

// New returns a Writer.
func New(o Options) *Writer { return &Writer{options: o} }

// Open returns a Session for a version of an item. The session does not change this version, because other goroutines
// may read it.
func (w *Writer) Open(state *itemstate.Item, read *lsv1alpha1.DeployItem) *Session {
	return &Session{writer: w, state: state, key: client.ObjectKeyFromObject(read), read: read, stored: read, working: read}
}

// ErrSuperseded indicates that the run is no longer the current one.
var ErrSuperseded = errors.New("the job of this call is no longer the current one")

var (
	// errSuperseded is the error of a write whose run is no longer current.
	errSuperseded = fmt.Errorf("deployerlib: %w", ErrSuperseded)
	// errConflict is the error of a start that conflicts with a change by another client. The next attempt handles the
	// change.
	errConflict = fmt.Errorf("the item changed while its run was being started: %w", ErrSuperseded)
	// errRemoved is the error of a write during a run whose item does not exist any more.
	errRemoved = fmt.Errorf("the item does not exist any more: %w", ErrSuperseded)
)

// ResultKind classifies the result of a write.
type ResultKind int

// These are the kinds of results.
const (
	// ResultStored means that the item is up to date, or does not exist.
	ResultStored ResultKind = iota
	// ResultSuperseded means that another client changed the item. The next attempt must handle the newer version.
	ResultSuperseded
	// ResultRefused means that the API server, or a check before the write, refused the write.
	ResultRefused
	// ResultUnconfirmed means that the API server did not respond or did not confirm the write.
	ResultUnconfirmed
)

// Result is the result of a write. Err is nil if the item is up to date or does not exist.
type Result struct {
	Kind ResultKind
	Err  error
}

// ToResult classifies the error of a write.
func ToResult(err error) Result {
	_, isWrite := errors.AsType[*writeError](err)
	switch {
	case err == nil:
		return Result{}
	case errors.Is(err, ErrSuperseded):
		return Result{Kind: ResultSuperseded, Err: err}
	case isRefusal(err) || !isWrite:
		return Result{Kind: ResultRefused, Err: err}
	}
	return Result{Kind: ResultUnconfirmed, Err: err}
}

// writeError is the error of a write that the API server did not confirm.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// IsWriteError reports whether err comes from a write. Do not record such an error in the status of the item, unless
// ToResult classifies it as ResultRefused.
func IsWriteError(err error) bool {
	_, ok := errors.AsType[*writeError](err)
	return ok
}

// isRefusal reports whether the API server received a write and refused it.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || patch.IsTooLarge(err)
}

// newWriteError returns err as a writeError. It removes text that quotes the configuration of the item, because the
// configuration may contain secrets.
func newWriteError(item *lsv1alpha1.DeployItem, err error) *writeError {
	if config := item.Spec.Configuration; config != nil && len(config.Raw) > 0 {
		err = redact.Error(err, config.Raw)
	}
	return &writeError{err: err}
}
