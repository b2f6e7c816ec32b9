// SPDX-License-Identifier: Apache-2.0

package decide

import "slices"

// State is a state of a machine. It says what a request is for. The name begins with the name of the machine.
type State string

// The machine Write writes a desired object.
const (
	writeReading      State = "Write/Reading"
	writeAsking       State = "Write/Asking"
	writeClaiming     State = "Write/Claiming"
	writeContested    State = "Write/Contested"
	writeFindingOwner State = "Write/FindingOwner"
	writeTaking       State = "Write/Taking"
	writeInheriting   State = "Write/Inheriting"
	writeApplying     State = "Write/Applying"
	writeTrying       State = "Write/Trying"
	writeUpdating     State = "Write/Updating"
	writeRestoring    State = "Write/Restoring"
	writeWriting      State = "Write/Writing"
	writeWithdrawing  State = "Write/Withdrawing"
	writeRejected     State = "Write/Rejected"
	writeRekeying     State = "Write/Rekeying"
	writePreparing    State = "Write/Preparing"
	writeChecking     State = "Write/Checking"
	writeReplacing    State = "Write/Replacing"
	writePatching     State = "Write/Patching"
)

// The machine Share makes the item an additional owner of an object.
const (
	shareFindingOwners State = "Share/FindingOwners"
	shareTransferring  State = "Share/Transferring"
	shareJoining       State = "Share/Joining"
	shareContributing  State = "Share/Contributing"
	shareDisputed      State = "Share/Disputed"
)

// The machine Remove removes an object from the cluster or from the inventory.
const (
	removeExamining     State = "Remove/Examining"
	removeFindingOwners State = "Remove/FindingOwners"
	removePreparing     State = "Remove/Preparing"
	removeDeleting      State = "Remove/Deleting"
	removeReexamining   State = "Remove/Reexamining"
	removeConfirming    State = "Remove/Confirming"
	removeFinalizing    State = "Remove/Finalizing"
	removeUnmarking     State = "Remove/Unmarking"
	removeResigning     State = "Remove/Resigning"
	removeHandingOver   State = "Remove/HandingOver"
	removeTransferring  State = "Remove/Transferring"
	removeWithdrawing   State = "Remove/Withdrawing"
	removeReading       State = "Remove/Reading"
	removeReleasing     State = "Remove/Releasing"
)

// The machine Migrate interrupts the others if managedFields contains an API version that does not exist any more.
const (
	migrateReading  State = "Migrate/Reading"
	migrateRenaming State = "Migrate/Renaming"
)

// handler is a function that returns the next step after the response to a request.
type handler func(*Rules, Facts) Step

// Row describes a state.
type Row struct {
	State State
	// Action describes what the machine does in the state. The subject is the machine.
	Action string
	// IsFirst means that the work on an object can begin in the state.
	IsFirst bool
	// Next lists the states that can follow. The work on the object can also end in each state, and a migration can
	// interrupt each state.
	Next   []State
	handle handler
}

// states contains the states of all machines.
var states = []Row{
	{writeReading, "reads the object, and then decides again", true, []State{writeAsking, writeClaiming, writeFindingOwner, writeInheriting, writeApplying, writeTrying, writeUpdating, writeRestoring, writeWriting, shareFindingOwners, shareTransferring, shareJoining, shareContributing}, handleReading},
	{writeAsking, "asks whether changes by other writers may be corrected now", true, []State{writeReading, writeClaiming, writeApplying, writeUpdating, writePreparing, writeChecking, writeReplacing, shareContributing}, handleAsking},
	{writeClaiming, "applies an object that the item may not own yet, without force", true, []State{writeContested, writeFindingOwner, writeTaking, writeInheriting, writeWriting, writeWithdrawing, writeRejected, writePreparing, writeChecking, writeReplacing, shareFindingOwners, shareTransferring, shareJoining}, handleClaiming},
	{writeContested, "reads an object after a conflict with other managers", false, []State{writeFindingOwner, writeTaking, writeInheriting, writeWriting, shareFindingOwners, shareTransferring, shareJoining}, handleContested},
	{writeFindingOwner, "asks whether the item exists to which the object belongs", false, []State{writeAsking, writeInheriting, writeUpdating, writeWriting}, handleFindingOwner},
	{writeTaking, "applies an object with force, to take fields from other managers", false, []State{writeWriting}, handleTaking},
	{writeInheriting, "transfers the fields of an earlier owner", false, []State{writeWriting}, handleInheriting},
	{writeApplying, "applies an object of the inventory", true, []State{writeReading, writeClaiming, writeInheriting, writeWriting, writeRejected, writePreparing, writeChecking, writeReplacing, shareTransferring, shareJoining, shareDisputed}, handleApplying},
	{writeTrying, "applies an object with the strategy Recreate as a dry run", false, []State{writeAsking, writeApplying, writePreparing, writeChecking, writeReplacing}, handleTrying},
	{writeUpdating, "updates an object that was read", false, []State{writeWriting, writePreparing, writeChecking, writeReplacing}, handleUpdating},
	{writeRestoring, "restores the owner label of an object with the strategy OnDelete", false, nil, handleRestoring},
	{writeWriting, "writes an object that the item owns or creates", true, []State{writeReading, writeWriting, writeRejected}, handleWriting},
	{writeWithdrawing, "removes the item's fields from an object that it must not own", false, []State{writeRejected}, handleWithdrawing},
	{writeRejected, "reads an object after the API server rejected its manifest", false, []State{writeRekeying, writePreparing, writeReplacing}, handleRejected},
	{writeRekeying, "corrects the keys of list items", false, []State{writeInheriting, writeWriting}, handleRekeying},
	{writePreparing, "patches an object before it is deleted and created again", false, []State{writeChecking, writeReplacing}, handlePreparing},
	{writeChecking, "reads the owners of an object that is to be deleted and created again", false, []State{writeReplacing}, handleChecking},
	{writeReplacing, "deletes an object that a later call creates again", false, nil, handleReplacing},
	{writePatching, "sends PatchAfterDeployment", true, nil, handlePatching},
	{shareFindingOwners, "asks whether the other owners exist", false, []State{writeTaking, writeInheriting, writeUpdating, writeWriting, shareTransferring, shareJoining}, handleShareFindingOwners},
	{shareTransferring, "transfers fields that the item set with another strategy", false, []State{shareJoining}, handleShareTransferring},
	{shareJoining, "applies the item's fields", false, []State{writeWriting, shareJoining}, handleShareJoining},
	{shareContributing, "applies the item's fields again", true, []State{writeReading, writeClaiming, writeTaking, writeInheriting, writeUpdating, writeWriting, writeRejected, shareFindingOwners, shareTransferring, shareJoining, shareDisputed}, handleShareContributing},
	{shareDisputed, "reads the object after a conflict with other owners", false, []State{shareTransferring, shareJoining}, handleDisputed},
	{removeExamining, "reads the owners of the object", true, []State{removeFindingOwners, removePreparing, removeDeleting, removeFinalizing, removeUnmarking, removeResigning, removeTransferring, removeWithdrawing}, handleExamining},
	{removeFindingOwners, "asks whether the other owners exist", false, []State{removeUnmarking, removeResigning, removeTransferring, removeWithdrawing}, handleRemoveFindingOwners},
	{removePreparing, "patches the object before it is deleted", true, []State{removeExamining, removeDeleting, removeReexamining}, handleRemovePreparing},
	{removeDeleting, "deletes the object", true, []State{removeExamining, removeReexamining, removeConfirming}, handleDeleting},
	{removeReexamining, "reads an object whose deletion failed with a conflict", false, nil, handleReexamining},
	{removeConfirming, "reads an object that may be gone", true, []State{removeFinalizing}, handleConfirming},
	{removeFinalizing, "removes the finalizers of the object", false, nil, handleFinalizing},
	{removeUnmarking, "removes the owner label of an object that stays in the cluster", false, nil, handleUnmarking},
	{removeResigning, "removes the annotations of this item from a shared object", false, []State{removeExamining, removeHandingOver, removeTransferring, removeWithdrawing}, handleResigning},
	{removeHandingOver, "sets the owner label to another owner", false, []State{removeExamining, removeTransferring, removeWithdrawing}, handleHandingOver},
	{removeTransferring, "transfers the item's fields to one manager", false, []State{removeWithdrawing}, handleRemoveTransferring},
	{removeWithdrawing, "removes the item's fields", false, []State{removeExamining}, handleRemoveWithdrawing},
	{removeReading, "reads the owners of an object that the policy keeps", true, []State{removeReleasing}, handleRemoveReading},
	{removeReleasing, "marks an object that the policy keeps as released", true, nil, handleReleasing},
	{migrateReading, "reads the managedFields", false, []State{migrateRenaming}, handleMigrateReading},
	{migrateRenaming, "replaces the API version, and then repeats the request", false, nil, handleMigrateRenaming},
}

// ListStates returns the states of all machines.
func ListStates() []Row { return slices.Clone(states) }

// handlers contains the function that handles the response in each state.
var handlers = func() map[State]handler {
	out := map[State]handler{}
	for _, row := range states {
		out[row.State] = row.handle
	}
	return out
}()
