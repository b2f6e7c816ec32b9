// SPDX-License-Identifier: Apache-2.0

// Package scaffold implements `deployerkit init`, which creates the repository of a new deployer. The files in
// templates/ are text templates with the delimiters [[ and ]]. The directory common has the files of every deployer,
// and the directories of the styles have the deployer itself.
package scaffold
