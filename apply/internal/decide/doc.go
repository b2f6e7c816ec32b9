// SPDX-License-Identifier: Apache-2.0

// Package decide decides which request the engine sends next for one object, or with which result it ends the work on
// the object. It sends no requests itself, and all of its functions are pure.
//
// There are four state machines. The first one writes a desired object, the second one makes the item an additional
// owner of an object that other items own as well, and the third one removes an object. The fourth one interrupts the
// others if managedFields contains an API version that does not exist any more. Write, Remove, Release and
// PatchAfterDeployment return the first Step. A Step contains a Request and a State. The State says what the request is
// for, and thus which function handles the Response. The table in states.go lists the states and their successors, and
// the guide docs/architecture.md shows them as diagrams.
//
// What differs between the update strategies is in the table strategies.
package decide

//go:generate go run ./diagram ../../../docs/architecture.md
