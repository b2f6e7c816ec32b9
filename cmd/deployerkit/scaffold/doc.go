// SPDX-License-Identifier: Apache-2.0

// Package scaffold implements `deployerkit init`. The command creates the repository of a new deployer. The files in
// templates/ are text templates with the delimiters [[ and ]]. The directory templates/common contains the files that
// are the same for all styles of deployers. The other directories contain the files that depend on the choices of the
// user.
package scaffold
