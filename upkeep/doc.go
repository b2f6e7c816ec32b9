// SPDX-License-Identifier: Apache-2.0

// Package upkeep keeps the objects of deploy items in their targets.
package upkeep
